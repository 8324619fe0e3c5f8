/* The costs of a step, against closed forms: bytes of model states, elements moved, and growth
 * with depth, ranks and microbatches. */
#include "support/schedule_laws.h"

#include "nn/shape.h"
#include "sharding/formula.h"
#include "support/made_model.h"
#include "support/planned.h"
#include "support/share.h"

static const zero_shape shape = {
    .layers = 2, .hidden = 24, .heads = 3, .seq = 17, .vocab = 50};

typedef void (*job_check)(const schedule_job *job);

static void check_input(zero_plan_input input, int nodes, job_check check)
{
    schedule_job job;
    job_open(&job, input, nodes);
    check(&job);
    job_close(&job);
}

/* Random models, every stage, number of ranks, type and scheme; M microbatches. */
static void for_all(int M, zero_algorithm collectives, job_check check)
{
    for (uint64_t trial = 0; trial < 600; trial += TEST_SHARE(5)) {
        uint64_t random = trial;
        zero_model model = made_random(&random);
        zero_plan_input input =
            job_input(&model, (int)(trial % 4), 1 + (int)(trial / 4 % 8));
        input.type = (zero_type)made_draw(&random, 3);
        input.partition = (zero_partition_scheme)made_draw(&random, 2);
        input.prefetch = made_draw(&random, 3);
        input.accumulation = M;
        input.collectives = collectives;
        check_input(input, collectives == ZERO_ALGORITHM_SHM ? 1 : input.n_ranks, check);
        zero_model_destroy(&model);
    }
}

static int64_t states(const zero_schedule *s)
{
    return (int64_t)(s->class_peak[ZERO_CLASS_PARAMETERS] +
                     s->class_peak[ZERO_CLASS_GRADIENTS] +
                     s->class_peak[ZERO_CLASS_OPTIMIZER]);
}

/* ---- model states ---- */

/* Bytes per parameter: of all parameters, and of the rank's share. The rows of the table. */
static const int everywhere[2][4] = {{16, 8, 4, 0}, {16, 4, 2, 0}};
static const int sharded[2][4] = {{0, 8, 12, 16}, {0, 12, 14, 16}};

static void check_states(const schedule_job *job)
{
    const zero_plan_input *in = &job->s[0].input;
    int row = in->type != ZERO_FP32, N = in->n_ranks;
    int64_t psi = laws_padded(&job->s[0]), sum = 0, most = 0;
    int64_t share = in->partition == ZERO_PARTITION_SLICE
                        ? psi / N
                        : job->s[0].groups[0].partition.shard_len;
    for (int r = 0; r < N; r++) {
        int64_t bytes = states(&job->s[r]);
        if (bytes > most) most = bytes;
        sum += bytes;
    }
    assert_true(sum == psi * (N * everywhere[row][in->stage] + sharded[row][in->stage]));
    assert_true(most == psi * everywhere[row][in->stage] + share * sharded[row][in->stage]);
    double formula = zero_formula_state_bytes(psi, N, in->stage, in->type);
    if (in->partition == ZERO_PARTITION_SLICE)
        assert_true(fabs((double)most - formula) <= 1e-12 * formula);
}

TEST(model_states_take_the_formula_and_the_padding_to_the_byte)
{
    for_all(1, ZERO_ALGORITHM_P2P, check_states);
}

/* Parameters of stages 1 to 3 lie once on the node, rounded up to whole bytes per group. */
static void check_node(const schedule_job *job)
{
    const zero_plan_input *in = &job->s[0].input;
    int64_t N = in->n_ranks, psi = laws_padded(&job->s[0]), sum = 0;
    int64_t once = psi * (int64_t)zero_type_size(in->type);
    for (int r = 0; r < N; r++) sum += (int64_t)job->s[r].class_peak[ZERO_CLASS_PARAMETERS];
    bool is_once =
        in->stage == 3 || (in->stage > 0 && in->partition == ZERO_PARTITION_SLICE);
    int64_t copies = is_once ? 1 : N;
    assert_true(sum >= copies * once && sum < copies * once + N * in->model->n_groups + 1);
    double formula = zero_formula_state_bytes(psi, in->n_ranks, in->stage, in->type);
    bool is_below = (double)states(&job->s[0]) < formula;
    if (in->partition == ZERO_PARTITION_SLICE && psi > 0 && N > 1)
        assert_true(is_below == (in->stage == 1 || in->stage == 2));
}

TEST(ranks_of_a_node_hold_parameters_once)
{
    for_all(1, ZERO_ALGORITHM_SHM, check_node);
}

/* ---- forward only ---- */

static bool is_same_program(const zero_program *a, const zero_program *b)
{
    if (a->length != b->length) return false;
    for (int at = 0; at < a->length; at++) {
        const zero_instruction *i = &a->code[at], *k = &b->code[at];
        if (i->op != k->op || i->unit != k->unit || i->group != k->group) return false;
    }
    return true;
}

/* Compares with the same plan with a step: which memory is left out, and which is not. */
static void check_forward(const schedule_job *job)
{
    for (int r = 0; r < job->s[0].input.n_ranks; r++) {
        const zero_schedule *full = &job->s[r];
        zero_plan_input input = full->input;
        input.forward_only = true;
        zero_schedule s = compiled(&input);
        laws_check_lifetimes(&s);
        laws_check_places(&s);
        laws_check_ledger(&s);
        assert_int_equal(s.programs[ZERO_PROGRAM_STEP].length, 0);
        for (int p = ZERO_PROGRAM_EVALUATE; p < ZERO_PROGRAMS; p++)
            assert_true(is_same_program(&s.programs[p], &full->programs[p]));
        assert_true(is_same_program(&s.programs[ZERO_PROGRAM_PROLOGUE],
                                    &full->programs[ZERO_PROGRAM_PROLOGUE]));
        assert_int_equal(s.class_peak[ZERO_CLASS_PARAMETERS],
                         full->class_peak[ZERO_CLASS_PARAMETERS]);
        assert_int_equal(states(&s), s.class_peak[ZERO_CLASS_PARAMETERS]);
        assert_int_equal(s.class_peak[ZERO_CLASS_IN_FLIGHT], 0);
        assert_int_equal(s.class_peak[ZERO_CLASS_ACCUMULATORS], 0);
        double formula = zero_formula_parameter_bytes(laws_padded(&s), input.n_ranks,
                                                      input.stage, input.type);
        bool is_exact = input.collectives == ZERO_ALGORITHM_P2P &&
                        input.partition == ZERO_PARTITION_SLICE;
        if (is_exact) assert_true(fabs((double)states(&s) - formula) <= 1e-12 * formula);
        zero_schedule_destroy(&s);
    }
}

TEST(a_forward_only_plan_keeps_the_parameters_only)
{
    for_all(1, ZERO_ALGORITHM_P2P, check_forward);
    for_all(3, ZERO_ALGORITHM_SHM, check_forward);
}

/* ---- communication ---- */

/* The bytes that all ranks send and receive in a step's REDUCE or GATHER. */
static zero_volume moved(const schedule_job *job, zero_op op)
{
    zero_traffic sum = {0};
    for (int r = 0; r < job->n_ranks; r++) {
        zero_traffic one = zero_schedule_traffic(&job->s[r], ZERO_PROGRAM_STEP, op);
        zero_traffic_add(&sum, 1, &one);
    }
    return zero_traffic_total(&sum);
}

/* (N-1)/N of each group, on every rank, each time. */
static int64_t elements(const zero_schedule *s, zero_op op, size_t *bytes)
{
    int64_t sum = 0;
    *bytes = 0;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        const zero_exchange *x =
            op == ZERO_OP_REDUCE ? &s->groups[g].reduce : &s->groups[g].gather;
        int64_t n = laws_count(s, ZERO_PROGRAM_STEP, op, g) * s->groups[g].partition.padded;
        sum += n * (s->input.n_ranks - 1);
        if (n > 0)
            *bytes += (size_t)(n * (s->input.n_ranks - 1)) *
                      zero_type_size(s->buffers[x->in].type);
    }
    return sum;
}

static void check_equal_shares(const schedule_job *job, zero_op op)
{
    zero_traffic first = zero_schedule_traffic(&job->s[0], ZERO_PROGRAM_STEP, op);
    zero_volume a = zero_traffic_total(&first);
    assert_true(a.bytes_sent == a.bytes_received);
    for (int r = 1; r < job->n_ranks; r++) {
        zero_traffic other = zero_schedule_traffic(&job->s[r], ZERO_PROGRAM_STEP, op);
        zero_volume b = zero_traffic_total(&other);
        assert_true(a.bytes_sent == b.bytes_sent && a.bytes_received == b.bytes_received);
    }
}

static void check_volume(const schedule_job *job)
{
    const zero_plan_input *in = &job->s[0].input;
    int64_t sum = 0;
    for (int k = 0; k < 2; k++) {
        zero_op op = k == 0 ? ZERO_OP_REDUCE : ZERO_OP_GATHER;
        size_t bytes;
        sum += elements(&job->s[0], op, &bytes);
        zero_volume v = moved(job, op);
        assert_true((size_t)v.bytes_sent == bytes && (size_t)v.bytes_received == bytes);
        if (in->partition == ZERO_PARTITION_SLICE) check_equal_shares(job, op);
    }
    double formula = in->n_ranks * zero_formula_volume(laws_padded(&job->s[0]), in->n_ranks,
                                                       in->stage, in->accumulation);
    if (in->stage < 3) assert_true(fabs((double)sum - formula) <= 1e-12 * formula);
}

/* Stage 3, if no group has more than two readers, and groups with two end the model: a bound. */
static void check_bound(const schedule_job *job)
{
    const zero_plan_input *in = &job->s[0].input;
    size_t bytes;
    double sum = (double)(elements(&job->s[0], ZERO_OP_REDUCE, &bytes) +
                          elements(&job->s[0], ZERO_OP_GATHER, &bytes));
    double formula = in->n_ranks * zero_formula_volume(laws_padded(&job->s[0]), in->n_ranks,
                                                       3, in->accumulation);
    check_volume(job);
    assert_true(sum < formula || in->n_ranks == 1);
}

TEST(a_step_moves_what_the_formula_says)
{
    for (int M = 1; M <= 3; M++) {
        for_all(M, ZERO_ALGORITHM_P2P, check_volume);
        for_all(M, ZERO_ALGORITHM_SHM, check_volume);
    }
}

TEST(stage_3_moves_less_than_its_formula)
{
    zero_model model = built(&shape);
    for (int ranks = 1; ranks <= 8; ranks++)
        for (int M = 1; M <= 3; M++) {
            zero_plan_input input = job_input(&model, 3, ranks);
            input.accumulation = M;
            for (; input.prefetch <= 3; input.prefetch++)
                check_input(input, ranks, check_bound);
        }
    zero_model_destroy(&model);
}

/* Three units with a group each: the last stays between forward and backward, the first
 * between two microbatches. */
TEST(what_stays_live_is_not_gathered_again)
{
    static const int64_t n_params[] = {100, 200, 300};
    made_unit units[3];
    for (int u = 0; u < 3; u++)
        units[u] = (made_unit){.n_groups = 1,
                               .groups = {u},
                               .sizes = {.out = 1, .saved = 1, .row_loss = u / 2}};
    zero_model model = made_model(3, n_params, 3, units);
    for (int M = 1; M <= 4; M++) {
        schedule_job job;
        zero_plan_input input = job_input(&model, 3, 2);
        input.accumulation = M;
        job_open(&job, input, 2);
        const int times[] = {M + 1, 2 * M, M};
        for (int g = 0; g < 3; g++)
            assert_int_equal(laws_count(&job.s[0], ZERO_PROGRAM_STEP, ZERO_OP_GATHER, g),
                             times[g]);
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- what grows with what ---- */

static zero_schedule compile(zero_plan_input input)
{
    zero_schedule s = compiled(&input);
    return s;
}

/* The options that the bits stand for. */
static zero_plan_input with_bits(const zero_model *model, int stage, int n_ranks, int bits)
{
    zero_plan_input input = job_input(model, stage, n_ranks);
    input.type = bits & 1 ? ZERO_BF16 : ZERO_FP32;
    input.accumulation = bits & 2 ? 4 : 1;
    input.reproducible = bits & 4;
    input.recompute = bits & 8;
    input.serial = bits & 16;
    input.prefetch = 1;
    return input;
}

static void check_depths(int stage, int bits)
{
    size_t peak[4][ZERO_CLASSES];
    for (int depth = 0; depth < 4; depth++) {
        zero_shape deeper = shape;
        deeper.layers = 4 + depth;
        zero_model model = built(&deeper);
        zero_schedule s = compile(with_bits(&model, stage, 4, bits));
        memcpy(peak[depth], s.class_peak, sizeof peak[depth]);
        zero_schedule_destroy(&s);
        zero_model_destroy(&model);
    }
    for (int c = 0; c < ZERO_CLASSES; c++) {
        bool grows = c == ZERO_CLASS_PARAMETERS || c == ZERO_CLASS_OPTIMIZER ||
                     c == (bits & 8 ? ZERO_CLASS_KEPT : ZERO_CLASS_ACTIVATIONS) ||
                     c == (bits & 2 ? ZERO_CLASS_ACCUMULATORS : ZERO_CLASS_GRADIENTS) ||
                     (c == ZERO_CLASS_GRADIENTS && (bits & 1));
        size_t step = peak[1][c] - peak[0][c];
        if (grows != (step > 0))
            fail_msg("stage %d, %x: %s", stage, bits, zero_class_name(c));
        for (int depth = 2; depth < 4; depth++)
            assert_true(peak[depth][c] - peak[depth - 1][c] == step);
    }
}

/* From depth to depth every class grows by the same amount: the model states with their
 * accumulators and, since all blocks wait for their backward, the activations; gradients in
 * flight, gathered parameters and the rest not at all. */
TEST(beside_the_model_states_only_activations_grow_with_depth)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int bits = 0; bits < 32; bits++) check_depths(stage, bits);
}

/* A model that 1 to 8 ranks cut without padding. */
static zero_model even_model(void)
{
    static const int64_t n_params[] = {840 * 64, 1680 * 64, 840 * 64, 2520 * 64};
    made_unit units[4];
    for (int u = 0; u < 4; u++)
        units[u] = (made_unit){.n_groups = 1,
                               .groups = {u},
                               .sizes = {.out = 2,
                                         .saved = 5,
                                         .forward_work = 1,
                                         .backward_work = 3,
                                         .logits = u / 3 * 7,
                                         .row_loss = u / 3}};
    return made_model(4, n_params, 4, units);
}

/* All classes but the model states and the staging of collectives. */
TEST(beside_the_model_states_nothing_depends_on_the_number_of_ranks)
{
    zero_model model = even_model();
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int bits = 0; bits < 32; bits++) {
            if (bits & 2) continue; /* pieces in flight belong to ranks */
            zero_schedule one = compile(with_bits(&model, stage, 1, bits & ~4));
            for (int n = 2; n <= 8; n++) {
                zero_schedule s = compile(with_bits(&model, stage, n, bits & ~4));
                for (int c = ZERO_CLASS_GATHERED; c < ZERO_CLASSES; c++)
                    if (c != ZERO_CLASS_BUCKETS)
                        assert_true(s.class_peak[c] == one.class_peak[c]);
                zero_schedule_destroy(&s);
            }
            zero_schedule_destroy(&one);
        }
    zero_model_destroy(&model);
}

TEST(without_reproducible_sums_microbatches_share_their_memory)
{
    zero_model model = even_model();
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int bits = 0; bits < 32; bits++) {
            zero_plan_input input = with_bits(&model, stage, 4, (bits & ~4) | 2);
            zero_schedule few = compile(input);
            input.accumulation = 16;
            zero_schedule many = compile(input);
            assert_memory_equal(few.class_peak, many.class_peak, sizeof few.class_peak);
            assert_true(few.peak_bytes == many.peak_bytes);
            zero_schedule_destroy(&few);
            zero_schedule_destroy(&many);
        }
    zero_model_destroy(&model);
}

/* A binary counter to 2^k has k + 1 digits, each of them fp32: of whole groups, or pieces. */
TEST(reproducible_sums_cost_a_counter)
{
    zero_model model = even_model();
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int k = 1; k <= 5; k++) {
            zero_plan_input input = with_bits(&model, stage, 4, 4 | (k & 1));
            input.accumulation = 1 << k;
            zero_schedule s = compile(input);
            bool is_cut = zero_stage_at(stage)->gradients == ZERO_HOLD_PIECE;
            size_t held = (size_t)laws_padded(&s) * sizeof(float) / (is_cut ? 4 : 1);
            assert_true(s.class_peak[ZERO_CLASS_ACCUMULATORS] == held * (size_t)(k + 1));
            zero_schedule_destroy(&s);
        }
    zero_model_destroy(&model);
}

/* ---- staging ---- */

/* One reduction is in flight at a time, and an all-gather stages nothing. */
TEST(the_bucket_bounds_what_is_staged)
{
    static const int64_t buckets[] = {1100, 5000, 1 << 20};
    zero_model model = even_model();
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int b = 0; b < 3; b++)
            for (int bits = 0; bits < 4; bits++) {
                zero_plan_input input = with_bits(&model, stage, 4, bits);
                input.bucket = buckets[b];
                zero_schedule s = compile(input);
                size_t staged = s.class_peak[ZERO_CLASS_BUCKETS];
                assert_true(staged > 0 && staged <= (size_t)buckets[b] * sizeof(float));
                zero_schedule_destroy(&s);
            }
    zero_model_destroy(&model);
}
