/* The output of `zero plan`: ledger, time, the largest model, its options. */

#include "plan/plan.h"
#include "plan/plan_fit.h"
#include "plan/plan_time.h"
#include "sharding/compile.h"
#include "sharding/formula.h"
#include "sharding/schedule_exchange.h"
#include "support/plan_words.h"
#include "support/planned.h"
#include "support/table.h"
#include "train/config.h"

static const zero_shape shape = {
    .layers = 3, .hidden = 24, .heads = 3, .seq = 17, .vocab = 50};

static zero_plan_input plan_of(const zero_model *model, int stage, int ranks, int M)
{
    return (zero_plan_input){.model = model,
                             .stage = stage,
                             .n_ranks = ranks,
                             .micro_batch = 2,
                             .seq = model->seq,
                             .accumulation = M,
                             .bucket = 1 << 16,
                             .prefetch = 1};
}

/* Every stage, several ranks, on a node each or on two nodes, M and type. */
static void for_all(void (*check)(const zero_schedule *s))
{
    zero_model model = built(&shape);
    for (int k = 0; k < 4 * 5 * 3 * 2 * 2; k++) {
        zero_layout layout;
        const char *why;
        zero_plan_input in = plan_of(&model, k % 4, 1 + k / 4 % 5, 1 + k / 20 % 3);
        bool shares = k / 60 % 2 != 0 && in.n_ranks > 2;
        in.type = k / 120 ? ZERO_BF16 : ZERO_FP32;
        assert_ok(zero_layout_init_blocks(&layout, in.n_ranks, shares ? 2 : in.n_ranks));
        in.layout = &layout;
        in.collectives = zero_algorithm_choose(&layout, &why);
        zero_schedule s = compiled(&in);
        check(&s);
        zero_schedule_destroy(&s);
        zero_layout_destroy(&layout);
    }
    zero_model_destroy(&model);
}

static bool is_papers_case(const zero_schedule *s)
{
    return s->input.accumulation == 1 && s->input.collectives == ZERO_ALGORITHM_P2P;
}

/* ---- memory ---- */

static void check_peak(const zero_schedule *s)
{
    zero_plan_ledger l;
    size_t sum = 0;
    zero_plan_add_up(s, &l);
    for (int c = 0; c < ZERO_CLASSES; c++) {
        assert_true(l.at_peak[c] <= s->class_peak[c]);
        sum += l.at_peak[c];
    }
    assert_true(sum == s->peak_bytes);
    assert_true(l.needed == s->own_bytes + s->window_bytes + zero_plan_process(s));
    assert_true(zero_plan_process(s) > ZERO_PROCESS_BYTES);
}

TEST(classes_at_the_peak_add_up_to_it)
{
    for_all(check_peak);
}

static void check_states(const zero_schedule *s)
{
    zero_plan_ledger l;
    zero_plan_add_up(s, &l);
    if (is_papers_case(s))
        assert_true(fabs((double)l.states - l.formula - l.padding) < 1e-6);
    bool holds_whole = s->input.stage == 1 || s->input.stage == 2;
    if (zero_schedule_shares(s) && holds_whole)
        assert_true((double)l.states < l.formula + l.padding);
}

TEST(states_are_the_papers_and_padding_or_less_where_nodes_share)
{
    for_all(check_states);
}

/* ---- volume, and what stays ---- */

static int gathers_of(const zero_schedule *s, int g)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int n = 0;
    for (int at = 0; at < p->length; at++)
        n += p->code[at].op == ZERO_OP_GATHER && p->code[at].group == g;
    return n;
}

static void check_volume(const zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    zero_plan_ledger l;
    zero_plan_add_up(s, &l);
    if (in->collectives != ZERO_ALGORITHM_P2P) return;
    int64_t reduced = zero_traffic_total(&l.reduce.traffic).bytes_sent;
    int64_t gathered = zero_traffic_total(&l.gather.traffic).bytes_sent;
    double saved = 0.0; /* in stage 3 each group may be gathered twice per microbatch */
    for (int g = 0; in->stage == 3 && g < in->model->n_groups; g++)
        saved += (2.0 * in->accumulation - gathers_of(s, g)) *
                 (double)s->groups[g].gather.traffic.bytes_sent[ZERO_ACROSS];
    assert_true(fabs((double)reduced - l.reduce.formula) < 1e-6);
    assert_true(fabs((double)gathered + saved - l.gather.formula) < 1e-6);
    double volume = zero_formula_volume(l.padded, in->n_ranks, in->stage, in->accumulation);
    if (in->type == ZERO_FP32)
        assert_true(fabs(4.0 * volume - l.reduce.formula - l.gather.formula) < 1e-6);
}

TEST(what_is_sent_is_the_papers_volume_without_what_stays)
{
    for_all(check_volume);
}

static void check_kept(const zero_schedule *s)
{
    int groups[8];
    size_t bytes;
    int n = zero_plan_kept(s, groups, &bytes), last = s->input.model->n_groups - 1;
    if (s->input.stage < 3) assert_true(n == 0 && bytes == 0);
    if (s->input.stage < 3 || s->input.collectives != ZERO_ALGORITHM_P2P) return;
    /* what the head reads: the final norm and the embedding */
    assert_true(n == 2 && groups[0] == last && groups[1] == 0);
    int64_t elements = s->groups[0].partition.padded + s->groups[last].partition.padded;
    assert_true(bytes == (size_t)elements * zero_type_size(s->input.type));
}

TEST(what_the_last_unit_reads_stays_from_forward_to_backward)
{
    for_all(check_kept);
}

TEST(resident_groups_stay_too)
{
    int groups[8];
    size_t bytes;
    zero_model model = built(&shape);
    zero_plan_input in = plan_of(&model, 3, 3, 1);
    in.persist = 1 << 20;
    zero_schedule s = compiled(&in);
    assert_int_equal(zero_plan_kept(&s, groups, &bytes), model.n_groups);
    assert_true(bytes == s.class_peak[ZERO_CLASS_GATHERED]);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* ---- time ---- */

static zero_plan_time time_of(const zero_schedule *s, double latency, double bandwidth,
                              double flops)
{
    zero_plan_machine machine = {
        .latency = latency, .bandwidth = bandwidth, .flops = flops};
    zero_plan_time t;
    assert_ok(zero_plan_time_step(s, &machine, &t));
    return t;
}

static void check_time(const zero_schedule *s)
{
    zero_plan_time t = time_of(s, 1e-6, 1e9, 1e9);
    assert_true(is_near(t.step, t.compute + t.exposed));
    assert_true(t.step >= fmax(t.compute, t.communication) * (1.0 - 1e-9));
    assert_true(t.exposed <= t.communication * (1.0 + 1e-9));
    zero_plan_time infinite = time_of(s, 0.0, 1e300, 1e9);
    assert_true(is_near(infinite.step, t.compute) && is_near(infinite.compute, t.compute));
    zero_plan_time idle = time_of(s, 1e-6, 1e9, 1e300);
    assert_true(is_near(idle.step, t.communication));
}

TEST(a_step_takes_what_it_computes_and_what_it_waits_for)
{
    for_all(check_time);
}

/* Copies of a device's collectives are hidden as far as there is something to compute. */
TEST(copies_of_a_device_take_time)
{
    zero_model model = built(&shape);
    for (int stage = 0; stage < 4; stage++) {
        zero_plan_input in = plan_of(&model, stage, 3, 1);
        in.device = 1;
        zero_schedule s = compiled(&in);
        zero_traffic t = zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
        zero_traffic gathered =
            zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
        zero_traffic_add(&t, 1, &gathered);
        zero_plan_machine machine = {
            .bandwidth = 1e300, .host_bandwidth = 1e9, .flops = 1e300};
        zero_plan_time idle, busy, none;
        assert_ok(zero_plan_time_step(&s, &machine, &idle));
        assert_true(t.bytes_fetched > 0 && idle.step >= 1e-9 * (double)t.bytes_fetched);
        assert_true(idle.step <= 1e-9 * (double)(t.bytes_fetched + t.bytes_stored));
        machine.flops = 1e9;
        assert_ok(zero_plan_time_step(&s, &machine, &busy));
        assert_true(is_near(busy.communication, idle.communication));
        assert_true(busy.exposed < idle.exposed);
        machine.host_bandwidth = 0.0;
        assert_ok(zero_plan_time_step(&s, &machine, &none));
        assert_true(none.exposed < 1e-9 * busy.exposed);
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&model);
}

TEST(without_overlap_nothing_is_hidden)
{
    zero_model model = built(&shape);
    for (int stage = 0; stage < 4; stage++) {
        zero_plan_input in = plan_of(&model, stage, 3, 1);
        zero_schedule s = compiled(&in);
        zero_plan_time overlapped = time_of(&s, 1e-6, 1e9, 1e9);
        zero_schedule_destroy(&s);
        in.serial = true;
        s = compiled(&in);
        zero_plan_time bare = time_of(&s, 1e-6, 1e9, 1e9);
        zero_schedule_destroy(&s);
        assert_true(is_near(bare.step, bare.compute + bare.communication));
        assert_true(overlapped.step < bare.step);
        assert_true(is_near(overlapped.communication, bare.communication));
    }
    zero_model_destroy(&model);
}

/* 6 flops per weight and token; attention on top. A recomputed block leaves out the last product,
 * which is a third of those with weights. */
TEST(flops_are_those_of_the_products)
{
    zero_model model = built(&shape);
    zero_plan_input in = plan_of(&model, 0, 1, 1);
    double L = 3, C = 24, V = 50, T = 17, rows = 2 * T;
    double blocks = L * (24 * rows * C * C + 4 * rows * T * C), head = 2 * rows * V * C;
    double lookup = rows * C, last = L * 8 * rows * C * C;
    zero_schedule s = compiled(&in);
    assert_true(is_near(time_of(&s, 0, 1, 1).compute, 3 * (blocks + head + lookup)));
    zero_schedule_destroy(&s);
    in.recompute = true;
    s = compiled(&in);
    assert_true(is_near(time_of(&s, 0, 1, 1).compute,
                        3 * (blocks + head + lookup) + blocks - last));
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

static zero_unit_sizes sizes_without_flops(const zero_unit *unit, int64_t B, int64_t T)
{
    bool is_last = strcmp(unit->name, "head") == 0;
    return (zero_unit_sizes){.out = B * T, .row_loss = is_last ? B * T : 0};
}

TEST(a_unit_of_unknown_work_takes_its_parameters_once_per_position)
{
    zero_model model = built(&shape);
    for (int u = 0; u < model.n_units; u++) model.units[u].sizes = sizes_without_flops;
    zero_plan_input in = plan_of(&model, 0, 1, 1);
    zero_schedule s = compiled(&in);
    double read = (double)(model.n_params + model.groups[0].n_params); /* tied: twice */
    assert_true(is_near(time_of(&s, 0, 1, 1).compute, 3 * 2.0 * 2 * 17 * read));
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* ---- the largest model ---- */

TEST(one_layer_more_than_fits_does_not_fit)
{
    const size_t limits[] = {51 << 20, 52 << 20, 58 << 20};
    for (size_t i = 0; i < COUNT(limits); i++)
        for (int stage = 0; stage < 4; stage++) {
            zero_plan_fitted fitted;
            zero_plan_ledger l;
            zero_shape deeper = shape;
            zero_plan_input in = {.stage = stage,
                                  .n_ranks = 4,
                                  .micro_batch = 2,
                                  .seq = shape.seq,
                                  .accumulation = 1,
                                  .bucket = 1 << 16,
                                  .prefetch = 1};
            assert_ok(
                zero_plan_fit(&shape, &in, &(zero_plan_room){.bytes = limits[i]}, &fitted));
            assert_true(fitted.needed <= limits[i]);
            if (fitted.layers == ZERO_MOST_LAYERS) continue;
            deeper.layers = fitted.layers + 1;
            zero_model model = built(&deeper);
            in.model = &model;
            assert_ok(zero_plan_measure(&in, &l));
            assert_true(l.needed > limits[i]);
            zero_model_destroy(&model);
        }
}

TEST(nothing_fits_less_than_a_process)
{
    zero_plan_fitted fitted;
    zero_plan_input in = {
        .n_ranks = 1, .micro_batch = 1, .seq = 17, .accumulation = 1, .bucket = 1 << 16};
    assert_fails(
        zero_plan_fit(&shape, &in, &(zero_plan_room){.bytes = ZERO_PROCESS_BYTES}, &fitted),
        ZERO_ERR_INVALID, "not even one layer");
}

/* ---- options ---- */

TEST(plans_options_and_trains_are_told_apart)
{
    zero_plan_options o;
    char words[512];
    assert_ok(parse(&o,
                    "--ranks 1K --model gpt2 --fit=32G --stage all --json "
                    "--network 2e-6,12.5G --rank 3 --flops 1.5T --dtype bf16",
                    words));
    assert_true(o.request.n_ranks == 1000 && o.request.rank == 3 &&
                o.request.fit == INT64_C(32000000000));
    assert_true(o.json && o.request.all_stages && o.request.has_time && !o.models &&
                !o.paper);
    assert_true(is_near(o.request.machine.latency, 2e-6) &&
                is_near(o.request.machine.bandwidth, 12.5e9) &&
                is_near(o.request.machine.flops, 1.5e12));
    assert_string_equal(o.request.config.model, "gpt2");
    assert_int_equal(o.request.config.plan.type, ZERO_BF16);
    assert_ok(parse(&o, "--stage 2", words));
    assert_true(!o.request.all_stages && o.request.config.plan.stage == 2 &&
                o.request.n_ranks == 1 && o.request.fit == 0);
}

TEST(the_memory_for_a_batch_is_the_limit)
{
    zero_plan_options o;
    char words[512];
    assert_ok(parse(&o, "--fit batch --memory-limit 2G", words));
    assert_true(o.request.fit_batch && o.request.fit == 0 &&
                o.request.fit_memory == INT64_C(2000000000) && !o.request.ablation);
    assert_ok(
        parse(&o, "--fit batch --device cuda --device-memory 3G --memory-limit 2G", words));
    assert_true(o.request.fit_memory == INT64_C(3000000000));
    assert_ok(parse(&o, "--ablation --stage 1 --json", words));
    assert_true(o.request.ablation && !o.request.fit_batch && o.json);
}

TEST(mistakes_are_refused_with_what_is_expected)
{
    for (test_table t = table_open("cli/refused_plans.txt"); table_next(&t);) {
        zero_plan_options o;
        char words[512];
        assert_fails(parse(&o, t.field[0], words), ZERO_ERR_INVALID, t.field[1]);
    }
}
