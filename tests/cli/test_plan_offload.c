/* `zero plan` and the scratch file: its bytes, the time of its transfers, the models that fit. */

#include "support/test.h"

#include "io/scratch_file.h"
#include "plan/plan.h"
#include "plan/plan_fit.h"
#include "plan/plan_time.h"
#include "report/advice.h"
#include "report/plan_program.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "support/plan_words.h"
#include "support/planned.h"

enum { DEPTH = 4 };

static const zero_shape shape = {
    .layers = 5, .hidden = 48, .heads = 3, .seq = 16, .vocab = 20000};

static zero_plan_input plan_of(const zero_model *model, int stage, zero_type type,
                               zero_offload when)
{
    return (zero_plan_input){.model = model,
                             .stage = stage,
                             .type = type,
                             .n_ranks = 2,
                             .micro_batch = 2,
                             .seq = shape.seq,
                             .accumulation = 1,
                             .bucket = 1 << 16,
                             .prefetch = 1,
                             .offload = when,
                             .offload_depth = DEPTH};
}

/* Every stage, 32 and 16 bits, every place of updates, with and without all that may lie in the
 * file. */
static void for_all(void (*check)(const zero_schedule *s))
{
    zero_model model = built(&shape);
    for (int k = 0; k < 4 * 2 * 3 * 2; k++) {
        zero_type type = k / 4 % 2 ? ZERO_BF16 : ZERO_FP32;
        zero_plan_input in =
            plan_of(&model, k % 4, type, (zero_offload)(ZERO_OFFLOAD_END + k / 8 % 3));
        in.offload_activations = k / 24;
        in.recompute = k / 24 > 0;
        in.offload_parameters = k / 24 && in.stage == 3;
        zero_schedule s = compiled(&in);
        check(&s);
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&model);
}

/* ---- bytes ---- */

static void check_bytes(const zero_schedule *s)
{
    zero_plan_ledger l;
    zero_plan_add_up(s, &l);
    const zero_plan_input *in = &s->input;
    size_t ranks = in->stage == 0 ? 1 : 2, state = in->type == ZERO_FP32 ? 8 : 12, sum = 0;
    size_t states = state * (size_t)l.padded / ranks;
    size_t params = (size_t)in->offload_parameters * (size_t)l.padded / ranks *
                    zero_type_size(in->type);
    for (int c = 0; c < ZERO_CLASSES; c++) sum += l.file[c];
    assert_int_equal(sum, l.file_bytes);
    assert_true(l.file[ZERO_CLASS_OPTIMIZER] >= states && l.file_padding > 0);
    if (!in->offload_activations)
        assert_int_equal(l.file_bytes, states + params + l.file_padding);
    assert_int_equal(s->class_peak[ZERO_CLASS_OPTIMIZER], 0);
    assert_true(l.needed == s->own_bytes + s->window_bytes + zero_plan_process(s));
}

TEST(the_file_holds_the_states_and_pages_padding_and_is_no_memory)
{
    for_all(check_bytes);
}

static void check_step(const zero_schedule *s)
{
    zero_plan_ledger l;
    zero_plan_add_up(s, &l);
    zero_file_traffic all = zero_offload_total(&l.file_step);
    const zero_program *step = &s->programs[ZERO_PROGRAM_STEP];
    uint64_t shown = 0;
    for (int at = 0; at < step->length; at++) {
        const zero_instruction *i = &step->code[at];
        zero_op op = i->op;
        bool moves = op == ZERO_OP_FETCH || op == ZERO_OP_STORE || op == ZERO_OP_SAVE ||
                     op == ZERO_OP_RESTORE || op == ZERO_OP_FETCH_PARAM;
        if (moves) shown += (uint64_t)zero_plan_instruction_bytes(s, i);
    }
    assert_int_equal(shown, all.bytes_read + all.bytes_written);
    if (s->input.offload_parameters) return; /* they move with the states */
    assert_int_equal(l.file_step.states.bytes_read, l.file[ZERO_CLASS_OPTIMIZER]);
    assert_int_equal(l.file_step.states.bytes_written, l.file[ZERO_CLASS_OPTIMIZER]);
    assert_int_equal(l.file_step.activations.bytes_written, l.file[ZERO_CLASS_KEPT]);
}

TEST(a_step_moves_the_states_once_each_way_and_the_schedule_shows_it)
{
    for_all(check_step);
}

/* ---- time ---- */

static const zero_plan_machine machine = {
    .bandwidth = INFINITY, .flops = 1e10, .disk_read = 1e9, .disk_write = 2e9};

static zero_plan_time time_of(const zero_schedule *s, double flops, double disk)
{
    zero_plan_machine m = machine;
    zero_plan_time t;
    m.flops = flops;
    m.disk_read *= disk;
    m.disk_write *= disk;
    assert_ok(zero_plan_time_step(s, &m, &t));
    return t;
}

static void check_time(const zero_schedule *s)
{
    zero_plan_ledger l;
    zero_plan_add_up(s, &l);
    zero_file_traffic all = zero_offload_total(&l.file_step);
    zero_plan_time t = time_of(s, 1e10, 1.0), fast = time_of(s, 1e10, 1e100),
                   idle = time_of(s, 1e300, 1.0);
    assert_true(
        is_near(t.disk, (double)all.bytes_read / 1e9 + (double)all.bytes_written / 2e9));
    assert_true(is_near(t.step, t.compute + t.exposed + t.disk_exposed));
    assert_true(t.step >= fmax(t.compute, t.disk) * (1.0 - 1e-9));
    assert_true(t.disk_exposed <= t.disk * (1.0 + 1e-9));
    assert_true(is_near(fast.step, t.compute));
    assert_true(is_near(idle.step, t.disk));
    assert_true(t.disk_first <= t.disk_exposed);
    if (s->input.offload == ZERO_OFFLOAD_END && s->input.offload_activations == 0)
        assert_true(is_near(t.disk_exposed, t.disk) && t.disk_first == 0.0);
    if (s->input.offload == ZERO_OFFLOAD_LAZY) assert_true(t.disk_first > 0.0);
}

TEST(a_step_takes_what_it_computes_and_what_the_disk_does_not_hide)
{
    for_all(check_time);
}

static double exposed_with(const zero_model *model, zero_offload when, double flops)
{
    zero_plan_input in = plan_of(model, 2, ZERO_BF16, when);
    zero_schedule s = compiled(&in);
    zero_plan_time t = time_of(&s, flops, 1.0);
    zero_schedule_destroy(&s);
    return t.disk_exposed;
}

TEST(lazy_and_backward_hide_what_end_cannot)
{
    zero_model model = built(&shape);
    for (double flops = 1e8; flops < 1e12; flops *= 10.0) {
        double end = exposed_with(&model, ZERO_OFFLOAD_END, flops);
        double lazy = exposed_with(&model, ZERO_OFFLOAD_LAZY, flops);
        double backward = exposed_with(&model, ZERO_OFFLOAD_BACKWARD, flops);
        assert_true(lazy < end && backward < end);
    }
    zero_model_destroy(&model);
}

/* A group has more blocks than there are slots: they are updated while units before it compute. */
TEST(the_stream_runs_ahead_of_the_walk)
{
    zero_shape wide = shape;
    wide.hidden = 768;
    wide.layers = 2;
    wide.vocab = 100;
    zero_model model = built(&wide);
    zero_plan_input in = plan_of(&model, 2, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    zero_schedule s = compiled(&in);
    assert_true(s.groups[1].n_blocks > 2 * DEPTH);
    zero_plan_time slow = time_of(&s, 1e4, 1.0);
    assert_true(is_near(slow.disk_exposed, slow.disk_first) && slow.disk_first < slow.disk);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

TEST(ranks_of_a_node_share_its_disk)
{
    double seconds[2];
    zero_model model = built(&shape);
    for (int nodes = 1; nodes <= 2; nodes++) {
        zero_layout layout;
        zero_plan_input in = plan_of(&model, 1, ZERO_FP32, ZERO_OFFLOAD_LAZY);
        assert_ok(zero_layout_init_blocks(&layout, 2, nodes));
        in.layout = &layout;
        zero_schedule s = compiled(&in);
        seconds[nodes - 1] = time_of(&s, 1e10, 1.0).disk;
        zero_schedule_destroy(&s);
        zero_layout_destroy(&layout);
    }
    assert_true(is_near(seconds[0], 2.0 * seconds[1]));
    zero_model_destroy(&model);
}

TEST(enough_tokens_hide_the_disk_and_fewer_do_not)
{
    double times;
    zero_model model = built(&shape);
    zero_plan_input in = plan_of(&model, 2, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    zero_schedule s = compiled(&in);
    in.offload = ZERO_OFFLOAD_OFF;
    zero_schedule resident = compiled(&in);
    assert_ok(zero_plan_time_hidden(&s, &resident, &machine, 1.05, &times));
    for (int k = 0; k < 2; k++) { /* slower is the same as more tokens */
        double flops = 1e10 / (times * (k == 0 ? 1.001 : 0.99));
        double ratio = time_of(&s, flops, 1.0).step / time_of(&resident, flops, 1.0).step;
        assert_true(k == 0 ? ratio <= 1.05 : ratio > 1.05);
    }
    zero_schedule_destroy(&s);
    zero_schedule_destroy(&resident);
    zero_model_destroy(&model);
}

/* ---- what fits ---- */

TEST(memory_and_disk_both_limit_the_depth)
{
    zero_plan_fitted one, two;
    zero_plan_input in = plan_of(NULL, 2, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    const size_t memory = 128 << 20;
    assert_ok(zero_plan_fit(&shape, &in, &(zero_plan_room){.bytes = memory}, &one));
    assert_true(one.needed <= memory && one.file > 0);
    size_t disk = one.file / 2;
    assert_ok(
        zero_plan_fit(&shape, &in, &(zero_plan_room){.bytes = memory, .disk = disk}, &two));
    assert_true(two.file <= disk && two.layers < one.layers);
    zero_shape deeper = shape;
    zero_plan_ledger l;
    deeper.layers = two.layers + 1;
    zero_model model = built(&deeper);
    in.model = &model;
    assert_ok(zero_plan_measure(&in, &l));
    assert_true(l.file_bytes > disk && l.needed <= memory);
    zero_model_destroy(&model);
}

TEST(the_message_says_which_of_the_two_does_not_fit)
{
    zero_plan_fitted fitted;
    zero_plan_input in = plan_of(NULL, 2, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    assert_fails(zero_plan_fit(&shape, &in,
                               &(zero_plan_room){.bytes = 1 << 30, .disk = 4096}, &fitted),
                 ZERO_ERR_INVALID, "the file does not fit the disk");
    assert_fails(zero_plan_fit(&shape, &in,
                               &(zero_plan_room){.bytes = 4096, .disk = 1 << 30}, &fitted),
                 ZERO_ERR_INVALID, "bytes of memory per rank");
}

/* ---- the advice ---- */

static bool names(const zero_plan_input *in, zero_advice_room room, const char *words)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    zero_advice_show(in, false, room, out);
    fclose(out);
    bool found = strstr(text, words) != NULL;
    free(text);
    return found;
}

static bool names_offload(const zero_plan_input *in, size_t limit)
{
    return names(in, (zero_advice_room){.limit = limit}, "--offload DIR");
}

TEST(the_advice_names_offload_only_where_it_fits)
{
    zero_plan_ledger resident, offloaded;
    zero_model model = built(&shape);
    zero_plan_input in = plan_of(&model, 0, ZERO_FP32, ZERO_OFFLOAD_OFF);
    assert_ok(zero_plan_measure(&in, &resident));
    in.offload = ZERO_OFFLOAD_LAZY;
    assert_ok(zero_plan_measure(&in, &offloaded));
    assert_true(offloaded.needed < resident.needed);
    assert_false(names_offload(&in, offloaded.needed - 1)); /* it is given */
    in.offload = ZERO_OFFLOAD_OFF;
    assert_true(names_offload(&in, offloaded.needed));
    assert_false(names_offload(&in, ZERO_PROCESS_BYTES));
    zero_model_destroy(&model);
}

/* The advice for a full device names the first tier below it that fits: the host, then a file. */
TEST(the_advice_beside_a_device_looks_at_both_memories)
{
    zero_plan_ledger resident, host, file;
    zero_model model = built(&shape);
    zero_plan_input in = plan_of(&model, 1, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    in.device = true;
    in.offload_depth = 1;
    assert_ok(zero_plan_measure(&in, &file));
    in.offload_host = 1;
    assert_ok(zero_plan_measure(&in, &host));
    in.offload = ZERO_OFFLOAD_OFF;
    in.offload_host = 0;
    assert_ok(zero_plan_measure(&in, &resident));
    assert_true(host.device_needed < resident.device_needed && file.needed < host.needed);
    zero_advice_room room = {file.device_needed, true, host.needed};
    assert_true(names(&in, room, "--offload host") && !names(&in, room, "--offload DIR"));
    room.host = file.needed;
    assert_true(names(&in, room, "--offload DIR") && !names(&in, room, "--offload host"));
    room.host = 0;
    assert_true(names(&in, room, "--offload host"));
    in.offload = ZERO_OFFLOAD_LAZY; /* the host itself is too small */
    in.offload_host = 1;
    assert_true(names(&in, (zero_advice_room){.limit = file.needed}, "--offload DIR"));
    zero_model_destroy(&model);
}

/* One layer more would need more of the device, or of the host. */
TEST(both_memories_decide_what_fits_beside_a_device)
{
    static const zero_plan_room rooms[] = {{.bytes = 40 << 20, .host = 1 << 30},
                                           {.bytes = 1 << 30, .host = 120 << 20}};
    for (int k = 0; k < 4; k++) {
        const zero_plan_room *room = &rooms[k / 2];
        zero_plan_input in = plan_of(NULL, 2, ZERO_BF16, ZERO_OFFLOAD_LAZY);
        zero_shape deeper = shape;
        zero_plan_fitted fitted;
        zero_plan_ledger l;
        in.device = 1;
        in.offload_host = k % 2;
        assert_ok(zero_plan_fit(&shape, &in, room, &fitted));
        assert_true(fitted.needed <= room->bytes && fitted.host <= room->host);
        deeper.layers = fitted.layers + 1;
        zero_model model = built(&deeper);
        in.model = &model;
        assert_ok(zero_plan_measure(&in, &l));
        assert_true(k / 2 == 0 ? l.device_needed > room->bytes : l.needed > room->host);
        zero_model_destroy(&model);
    }
}

/* ---- options ---- */

TEST(a_disk_and_two_numbers_are_read)
{
    zero_plan_options o;
    char words[512];
    assert_ok(parse(&o, "--offload /x --disk 0.8G,1.2G --flops 500G --fit 4G,1GiB", words));
    assert_true(o.request.has_time && o.request.has_disk && !o.request.has_network);
    assert_true(is_near(o.request.machine.disk_read, 0.8e9) &&
                is_near(o.request.machine.disk_write, 1.2e9));
    assert_true(o.request.fit == 4000000000 && o.request.fit_disk == 1 << 30);
}
