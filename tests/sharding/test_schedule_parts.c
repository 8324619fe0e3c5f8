/* Shared models: parts of passes and the JOINs between them. */
#include "base/exact.h"
#include "base/number.h"
#include "lists/small.h"
#include "sharding/formula.h"
#include "support/made_model.h"
#include "support/planned.h"
#include "support/program_text.h"
#include "support/schedule_laws.h"

/* ---- the order of parallel.md ---- */

#define HIDDEN 6 /* floats per position of a sum */

/* Blocks with the passes of a transformer's, and a head that gathers a float per position.
 * */
static zero_model blocks_and_head(int blocks)
{
    static const int64_t n_params[] = {100, 200, 300, 400};
    const zero_unit_part joins = {.join = ZERO_JOIN_SUM, .count = HIDDEN / 3},
                         waits = {.waits = true},
                         both = {.waits = true, .join = ZERO_JOIN_SUM, .count = HIDDEN / 3},
                         neither = {.waits = false},
                         gathers = {.join = ZERO_JOIN_GATHER, .count = 1};
    made_unit units[4] = {
        {.recompute_without_out = true,
         .sizes = {.out = 2, .saved = 3, .forward_work = 1, .backward_work = 2}}};
    made_pass *block = units[0].passes, *head = units[blocks].passes;
    block[ZERO_PASS_FORWARD] = (made_pass){3, {joins, both, waits}};
    block[ZERO_PASS_EVALUATE] = block[ZERO_PASS_GENERATE] = block[ZERO_PASS_FORWARD];
    block[ZERO_PASS_RECOMPUTE] = (made_pass){2, {joins, waits}};
    block[ZERO_PASS_BACKWARD] = (made_pass){5, {joins, neither, both, neither, waits}};
    for (int u = 1; u < blocks; u++) units[u] = units[0];
    units[blocks].sizes =
        (zero_unit_sizes){.saved = 1, .backward_work = 2, .logits = 2, .row_loss = 1};
    head[ZERO_PASS_FORWARD] = (made_pass){1, {neither}};
    head[ZERO_PASS_BACKWARD] = (made_pass){3, {gathers, both, waits}};
    head[ZERO_PASS_EVALUATE] = head[ZERO_PASS_GENERATE] = (made_pass){2, {gathers, waits}};
    for (int u = 0; u <= blocks; u++) {
        units[u].n_groups = 1;
        units[u].groups[0] = u;
    }
    return made_model(blocks + 1, n_params, blocks + 1, units);
}

TEST(joins_stand_between_parts)
{
    zero_model model = blocks_and_head(1);
    made_share(&model, (zero_share){2, 1, 4});
    zero_plan_input input = job_input(&model, 0, 1);
    input.recompute = true;
    zero_schedule s = compiled(&input);
    assert_program(
        &s, ZERO_PROGRAM_STEP,
        "LOAD, FORWARD 0.0, JOIN 0, JOIN_WAIT 0, FORWARD 0.1, JOIN 0, JOIN_WAIT 0, FORWARD "
        "0.2, FORWARD 1.0, "
        "BACKWARD 1.0, JOIN 1, JOIN_WAIT 1, BACKWARD 1.1, JOIN 1, JOIN_WAIT 1, BACKWARD "
        "1.2, REDUCE 1, "
        "RECOMPUTE 0.0, JOIN 0, JOIN_WAIT 0, RECOMPUTE 0.1, "
        "BACKWARD 0.0, JOIN 0, BACKWARD 0.1, JOIN_WAIT 0, BACKWARD 0.2, JOIN 0, BACKWARD "
        "0.3, JOIN_WAIT 0, BACKWARD 0.4, "
        "REDUCE_WAIT 1, GATHER 1, REDUCE 0, REDUCE_WAIT 0, GATHER 0, GATHER_WAIT 1, "
        "GATHER_WAIT 0, LOSS, NORM 0, NORM 1, OVERFLOW, UPDATE 0, UPDATE 1, ");
    assert_program(&s, ZERO_PROGRAM_GENERATE,
                   "FORWARD 0.0, JOIN 0, JOIN_WAIT 0, FORWARD 0.1, JOIN 0, JOIN_WAIT 0, "
                   "FORWARD 0.2, FORWARD 1.0, JOIN 1, JOIN_WAIT 1, FORWARD 1.1, ");
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* Between passes no JOIN is in flight; there KEEP and COLLECT stand. */
static void assert_backward(const zero_schedule *s, const char *expected)
{
    char text[4000] = "";
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        bool is_first = i->part == ZERO_PART_ALL || i->part == 0;
        bool is_join = i->op == ZERO_OP_JOIN || i->op == ZERO_OP_JOIN_WAIT;
        if (is_first && i->unit >= 0 && !is_join) append_instruction(text, sizeof text, i);
    }
    assert_string_equal(text, expected);
}

static zero_plan_input pieces_input(const zero_model *model)
{
    zero_plan_input input = job_input(model, 0, 1);
    input.recompute = true;
    input.partition_activations = 1;
    return input;
}

/* A unit's input is collected while the unit after it goes backward; from the file it comes a unit
 * earlier, but for the last one, which stays. */
TEST(pieces_are_collected_one_unit_ahead)
{
    zero_model model = blocks_and_head(3);
    made_share(&model, (zero_share){2, 1, 4});
    zero_plan_input input = pieces_input(&model);
    zero_schedule s = compiled(&input);
    assert_backward(&s,
                    "FORWARD 0.0, FORWARD 1.0, KEEP 0, FORWARD 2.0, KEEP 1, FORWARD 3.0, "
                    "COLLECT 1, BACKWARD 3.0, "
                    "COLLECT_WAIT 1, COLLECT 0, RECOMPUTE 2.0, BACKWARD 2.0, "
                    "COLLECT_WAIT 0, RECOMPUTE 1.0, BACKWARD 1.0, "
                    "RECOMPUTE 0.0, BACKWARD 0.0, ");
    zero_schedule_destroy(&s);
    input.offload = ZERO_OFFLOAD_END;
    input.offload_depth = 2;
    input.offload_activations = 1;
    s = compiled(&input);
    assert_backward(&s,
                    "FORWARD 0.0, FORWARD 1.0, KEEP 0, SAVE 0, FORWARD 2.0, SAVE_WAIT 0, "
                    "KEEP 1, FORWARD 3.0, "
                    "RESTORE 0, COLLECT 1, BACKWARD 3.0, "
                    "COLLECT_WAIT 1, RESTORE_WAIT 0, COLLECT 0, RECOMPUTE 2.0, BACKWARD "
                    "2.0, COLLECT_WAIT 0, RECOMPUTE 1.0, BACKWARD 1.0, "
                    "RECOMPUTE 0.0, BACKWARD 0.0, ");
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* ---- what moves ---- */

typedef struct {
    zero_algorithm algorithm;
    int ranks;
    bool recompute;
} volume_case;

/* A step of three blocks and the head, two microbatches: what the formula says, to the
 * byte, as messages, or read by neighbours in the node's memory. */
static void check_volume(volume_case c)
{
    const int blocks = 3, M = 2;
    zero_model model = blocks_and_head(blocks);
    zero_layout node;
    made_share(&model, (zero_share){c.ranks, c.ranks - 1, c.ranks});
    zero_plan_input input = job_input(&model, 2, 2);
    input.recompute = c.recompute;
    input.accumulation = M;
    input.collectives = c.algorithm;
    assert_ok(zero_layout_init_blocks(&node, 2, 1));
    input.layout = &node;
    zero_schedule s = compiled(&input);
    int64_t rows = input.micro_batch * input.seq;
    int64_t sums = M * (blocks * zero_formula_tp_sums(c.recompute) + 1);
    double elements = zero_formula_tp_volume(rows * HIDDEN, sums, c.ranks) +
                      M * zero_formula_tp_gathered(rows, c.ranks);
    zero_traffic t = zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_JOIN);
    zero_volume v = zero_traffic_total(&t);
    assert_true(v.bytes_received == (int64_t)elements * 4);
    assert_true(v.bytes_sent == v.bytes_received);
    assert_int_equal(t.bytes_sent[ZERO_ACROSS], 0);
    zero_schedule_destroy(&s);
    zero_layout_destroy(&node);
    zero_model_destroy(&model);
}

TEST(joins_move_what_the_formula_says)
{
    static const int ranks[] = {2, 3, 4, 6, 8};
    for (int k = 0; k < 5; k++)
        for (int recompute = 0; recompute < 2; recompute++) {
            check_volume((volume_case){ZERO_ALGORITHM_P2P, ranks[k], recompute});
            check_volume((volume_case){ZERO_ALGORITHM_SHM, ranks[k], recompute});
        }
    /* 10 b s h (T-1)/T for each block with --recompute, where the paper has 12; 8 without.
     * */
    assert_true(zero_formula_tp_volume(1000, zero_formula_tp_sums(true), 4) == 7500);
    assert_true(zero_formula_tp_volume(1000, zero_formula_tp_sums(false), 4) == 6000);
    assert_true(zero_formula_tp_volume(1000, zero_formula_tp_sums_of_paper(true), 4) ==
                9000);
    assert_true(zero_formula_tp_volume(1000, zero_formula_tp_sums_of_paper(false), 4) ==
                6000);
}

static int64_t others(int ranks, int64_t bytes)
{
    return (ranks - 1) * bytes;
}

/* N = 2 on two nodes, T = 4 on each: losses go to the other rank of the ZeRO group, squares
 * and the vote to all seven others, of which three are near. */
TEST(small_messages_of_a_shared_model_go_to_all_ranks)
{
    zero_model model = blocks_and_head(1);
    made_share(&model, (zero_share){4, 1, 4});
    zero_plan_input input = job_input(&model, 1, 2);
    input.accumulation = 3;
    input.check_memory = 1;
    zero_schedule s = compiled(&input);
    zero_traffic t = zero_schedule_control_traffic(&s, ZERO_PROGRAM_STEP);
    int64_t losses = others(2, 3 * sizeof(double));
    int64_t words = (ZERO_EXACT_WORDS + ZERO_VOTE_WORDS + 2 * 8) * sizeof(int64_t);
    assert_true(t.bytes_sent[ZERO_INSIDE] == others(4, words));
    assert_true(t.bytes_sent[ZERO_ACROSS] == losses + 4 * words);
    assert_true(t.messages_sent[ZERO_INSIDE] == 3 * 3);
    assert_true(t.messages_sent[ZERO_ACROSS] == 1 + 3 * 4);
    assert_int_equal(zero_schedule_world_rank(&s), 1);
    assert_int_equal(zero_schedule_world_layout(&s)->n_nodes, 2);
    zero_schedule_destroy(&s);
    zero_model_destroy(&model);
}

/* ---- memory ---- */

/* `joint` is a rank's own, `joined` is shared by the ranks of the node. At the first JOIN
 * both are alive; the parts between have two sums. */
TEST(windows_of_a_tp_group_hold_what_is_joined)
{
    zero_model model = blocks_and_head(2);
    made_share(&model, (zero_share){4, 2, 4});
    zero_plan_input input = job_input(&model, 0, 1);
    size_t sum = (size_t)(input.micro_batch * input.seq) * HIDDEN * sizeof(float);
    input.collectives = ZERO_ALGORITHM_SHM;
    zero_schedule s = compiled(&input);
    input.collectives = ZERO_ALGORITHM_P2P;
    zero_schedule in_place = compiled(&input);
    assert_true(s.extent[ZERO_SPACE_TP_PART] == sum);
    assert_true(s.extent[ZERO_SPACE_TP_NODE] == sum);
    assert_true(s.tp_window_bytes == sum + zero_round_up_size(sum / 4, ZERO_BUFFER_ALIGN));
    assert_true(s.window_bytes == 0 && in_place.tp_window_bytes == 0);
    assert_true(s.own_bytes < in_place.own_bytes);
    zero_schedule_destroy(&s);
    zero_schedule_destroy(&in_place);
    zero_model_destroy(&model);
}

/* With one rank in the ZeRO group JOINs alone stage; one is in flight at a time. */
TEST(the_bucket_bounds_what_a_join_stages)
{
    static const int64_t buckets[] = {384, 1000, 5000, 1 << 20};
    zero_model model = blocks_and_head(1);
    made_share(&model, (zero_share){4, 0, 4});
    for (int b = 0; b < 4; b++) {
        zero_plan_input input = job_input(&model, 1, 1);
        input.micro_batch = 1000;
        input.bucket = buckets[b];
        zero_schedule s = compiled(&input);
        size_t staged = s.class_peak[ZERO_CLASS_BUCKETS];
        assert_true(staged > 0 && staged <= (size_t)buckets[b] * sizeof(float));
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&model);
}

/* ---- refusals ---- */

/* A model whose only unit goes through its forward pass like this. */
static void assert_pass_refused(made_pass pass, const char *text)
{
    static const int64_t n_params[] = {100};
    made_unit unit = {.n_groups = 1, .sizes = {.row_loss = 1}};
    unit.passes[ZERO_PASS_FORWARD] = pass;
    zero_model model = made_model(1, n_params, 1, &unit);
    snprintf(model.units[0].name, sizeof model.units[0].name, "the unit");
    for (int ranks = 1; ranks <= 2; ranks++) {
        made_share(&model, (zero_share){ranks, 0, 2});
        assert_refused(job_input(&model, 0, 1), text);
        assert_refused(job_input(&model, 0, 1), "unit 'the unit', part");
    }
    zero_model_destroy(&model);
}

TEST(units_that_break_the_contract_of_parts_are_refused)
{
    const zero_unit_part sum = {.join = ZERO_JOIN_SUM, .count = 1}, waits = {.waits = true},
                         none = {.waits = false};
    zero_unit_part nothing = sum, huge = sum;
    nothing.count = 0;
    huge.count = INT64_C(1) << 48;
    assert_pass_refused((made_pass){2, {none, waits}}, "waits, but no part has joined");
    assert_pass_refused((made_pass){3, {sum, waits, waits}},
                        "waits, but no part has joined");
    assert_pass_refused((made_pass){3, {sum, sum, waits}},
                        "joins before a part has waited");
    assert_pass_refused((made_pass){2, {sum, none}}, "a join is left");
    assert_pass_refused((made_pass){1, {sum}}, "a join is left");
    assert_pass_refused((made_pass){2, {nothing, waits}}, "joins 0 floats");
    assert_pass_refused((made_pass){2, {huge, waits}}, "expected 1 to 2^48");
}

static zero_unit_part never_last(const zero_unit *unit, zero_pass pass, int64_t B,
                                 int64_t T, int64_t index)
{
    (void)unit, (void)pass, (void)B, (void)T, (void)index;
    return (zero_unit_part){.waits = false};
}

TEST(shared_plans_that_make_no_sense_are_refused)
{
    zero_model model = blocks_and_head(1);
    zero_layout tp;
    made_share(&model, (zero_share){5, 0, 5});
    assert_refused(job_input(&model, 0, 1), "a multiple of the 5 ranks");
    made_share(&model, (zero_share){4, 0, 4});
    zero_plan_input input = pieces_input(&model);
    input.recompute = false;
    assert_refused(input, "--partition-activations needs --recompute");
    made_share(&model, (zero_share){1, 0, 4});
    assert_refused(pieces_input(&model), "--partition-activations needs --tp 2 or more");
    made_share(&model, (zero_share){4, 0, 4});
    input = job_input(&model, 0, 1);
    input.device = 1;
    assert_refused(input, "--device with --tp 4 --tp-slices 4");
    input = job_input(&model, 0, 1);
    input.bucket = 100;
    assert_refused(input,
                   "--bucket 100 is below the 192 elements that a JOIN of the 4 ranks");
    input.bucket = 5000;
    assert_ok(zero_layout_init_blocks(&tp, 3, 1));
    input.tp_layout = &tp;
    assert_refused(input, "rank 0 of 4 of a TP group, on nodes of 3 ranks");
    zero_layout_destroy(&tp);
    made_share(&model, (zero_share){4, 4, 4});
    assert_refused(job_input(&model, 0, 1), "a plan for rank 4 of 4 of a TP group");
    made_share(&model, (zero_share){4, 0, 1});
    assert_refused(job_input(&model, 0, 1), "with sums in 1 slices");
    made_share(&model, (zero_share){1, 0, 2});
    model.units[1].part = never_last;
    assert_refused(job_input(&model, 0, 1), "at most 2^20 parts");
    model.units[1].part = NULL;
    assert_refused(job_input(&model, 0, 1), "cannot be shared by 1 ranks in 2 slices");
    zero_model_destroy(&model);
}
