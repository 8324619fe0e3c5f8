/* Training runs as a whole: all ranks hold one model, and many settings change no bit of it. */
#include "support/engine_test.h"

#include <unistd.h>

#define STEPS 3

static test_setup with_accumulation(int M)
{
    test_setup setup = test_standard;
    setup.plan.accumulation = M;
    return setup;
}

/* ---- one model on all ranks ---- */

/* True if memory is the same on all ranks of the job. */
static bool same_everywhere(const void *x, size_t bytes)
{
    void *first = malloc(bytes + 1);
    assert_non_null(first);
    memcpy(first, x, bytes);
    MPI_Bcast(first, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    bool same = memcmp(first, x, bytes) == 0;
    free(first);
    return same;
}

static bool is_zero(const char *x, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (x[i] != 0) return false;
    return true;
}

/* A buffer of group g's data: parameters are not zero, the padding above them is. */
static void check_buffer(const test_run *run, int g, int buffer, bool is_shared)
{
    if (buffer == ZERO_NO_BUFFER) return;
    const zero_buffer *b = &run->engine.schedule.buffers[buffer];
    const char *x = zero_runner_buffer(&run->engine.runner, buffer);
    int64_t size = (int64_t)zero_type_size(b->type), held = (int64_t)b->bytes / size;
    int64_t inside = run->model.groups[g].n_params - b->begin;
    if (inside > held) inside = held;
    if (inside < 0) inside = 0;
    size_t bytes = (size_t)(inside * size);
    assert_all(inside == 0 || !is_zero(x, bytes));
    assert_all(is_zero(x + bytes, b->bytes - bytes));
    if (is_shared) assert_all(same_everywhere(x, bytes));
}

static void check_group(const test_run *run, int g)
{
    const zero_group_state *s = &run->engine.schedule.groups[g];
    bool shared = s->optimizer_held == ZERO_HOLD_WHOLE;
    check_buffer(run, g, s->param, s->param_held == ZERO_HOLD_WHOLE);
    check_buffer(run, g, s->grad, shared);
    check_buffer(run, g, s->sum, false);
    check_buffer(run, g, s->master, shared);
    check_buffer(run, g, s->state[0], shared);
    check_buffer(run, g, s->state[1], shared);
}

static void check_buffers(const test_setup *setup)
{
    test_run run;
    double loss;
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, STEPS);
    zero_source source = test_words(&run);
    /* The evaluation waits for the parameters that are on their way. */
    all_ok(zero_engine_evaluate(&run.engine, &source, &loss));
    for (int g = 0; g < run.model.n_groups; g++) check_group(&run, g);
    test_run_close(&run);
}

TEST(what_ranks_hold_in_common_is_the_same_and_padding_stays_zero)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int M = 1; M <= 2; M++)
            for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++) {
                test_setup setup = with_accumulation(M);
                setup.plan.stage = stage;
                setup.plan.type = type;
                setup.plan.collectives =
                    stage % 2 == 0 ? ZERO_ALGORITHM_P2P : ZERO_ALGORITHM_SHM;
                check_buffers(&setup);
            }
}

TEST(losses_and_norms_are_the_same_on_all_ranks)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = test_standard;
        test_run run;
        setup.plan.stage = stage;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        double mine[] = {run.last.loss, run.last.grad_norm, 0.0};
        zero_source source = test_words(&run);
        all_ok(zero_engine_evaluate(&run.engine, &source, &mine[2]));
        assert_all(same_everywhere(mine, sizeof mine));
        test_run_close(&run);
    }
}

/* ---- what does not change the bits ---- */

static void late_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                        void *targets)
{
    zero_rng rng = {
        .purpose = ZERO_RNG_TEST, .seed = 1, .step = (uint64_t)step, .sample = (uint64_t)i};
    usleep((useconds_t)(zero_rng_bits(&rng, (uint64_t)test_rank) % 8000));
    test_sample(arg, step, i, T, inputs, targets);
}

TEST(the_digest_does_not_depend_on_who_is_late)
{
    test_setup setup = with_accumulation(2);
    setup.plan.bucket = 777;
    test_digest want = test_digest_after(&setup, test_size, STEPS);
    test_run run;
    test_run_open(&run, &setup, test_size);
    zero_source late = {.sample = late_sample, .arg = &run.setup};
    test_run_steps_on(&run, &late, 0, STEPS);
    assert_all(test_same(test_run_digest(&run), want));
    test_run_close(&run);
}

TEST(two_engines_in_one_process_do_not_disturb_each_other)
{
    test_setup first = test_standard, second = with_accumulation(2);
    first.plan.stage = 1;
    second.plan.stage = 3;
    second.shape.layers = 1;
    second.shape.dropout = 0.2f;
    second.seed = 99;
    test_digest want_first = test_digest_after(&first, test_size, STEPS);
    test_digest want_second = test_digest_after(&second, test_size, STEPS);
    assert_all(!test_same(want_first, want_second));

    test_run a, b;
    test_run_open(&a, &first, test_size);
    test_run_open(&b, &second, test_size);
    for (int step = 0; step < STEPS; step++) {
        test_run_steps(&a, step, 1);
        test_run_steps(&b, step, 1);
    }
    assert_all(test_same(test_run_digest(&a), want_first));
    test_run_close(&a);
    assert_all(test_same(test_run_digest(&b), want_second));
    test_run_close(&b);
}

TEST(evaluating_and_generating_do_not_change_the_training)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = test_standard;
        test_run run;
        setup.plan.stage = stage;
        test_run_open(&run, &setup, test_size);
        zero_source source = test_words(&run);
        zero_sampling how = {.temperature = 1.0, .known = run.model.vocab};
        for (int step = 0; step < STEPS; step++) {
            double loss;
            int32_t text[4] = {1};
            test_run_steps(&run, step, 1);
            all_ok(zero_engine_evaluate(&run.engine, &source, &loss));
            all_ok(test_generate_text(&run.engine, &how, 1, 3, text));
        }
        assert_all(
            test_same(test_run_digest(&run), test_digest_after(&setup, test_size, STEPS)));
        test_run_close(&run);
    }
}

/* ---- the contest of kernels ---- */

static int64_t times[3]; /* of this rank's kernels */
static int taken;

static int64_t time_of(const zero_math *math, int i)
{
    (void)math;
    return times[i];
}

static void take(zero_math *math, int i)
{
    (void)math;
    taken = i;
}

/* The kernel that all ranks take; -1: none. */
static int winner(zero_type type, zero_bits bits, int64_t first, int64_t second,
                  int64_t third)
{
    static const zero_contest contest = {3, time_of, take};
    zero_backend backend = zero_backend_cpu;
    test_setup setup = test_standard;
    test_run run;
    backend.contest = &contest;
    setup.backend = &backend;
    setup.plan.type = type;
    setup.bits = bits;
    memcpy(times, (int64_t[]){first, second, third}, sizeof times);
    taken = -1;
    test_run_open(&run, &setup, test_size);
    test_run_close(&run);
    assert_all(same_everywhere(&taken, sizeof taken));
    return taken;
}

TEST(all_ranks_take_the_kernel_that_is_fastest_where_it_is_slowest)
{
    const bool am_last = test_rank == test_size - 1;
    assert_all(winner(ZERO_BF16, ZERO_BITS_AUTO, 100, 74, 60) == 1); /* 60 > 3/4 of 74 */
    assert_all(winner(ZERO_BF16, ZERO_BITS_AUTO, 100, 76, 74) == 2);
    assert_all(winner(ZERO_BF16, ZERO_BITS_AUTO, INT64_MAX, 100, 90) == 1);
    /* Each is the fastest on some rank. */
    assert_all(winner(ZERO_BF16, ZERO_BITS_AUTO, 100, am_last ? 200 : 10, 60) == 2);
    assert_all(winner(ZERO_BF16, ZERO_BITS_AUTO, 100, am_last ? INT64_MAX : 10, 90) == 0);
    assert_all(winner(ZERO_BF16, ZERO_BITS_PORTABLE, 100, 10, 1) == -1);
    assert_all(winner(ZERO_FP32, ZERO_BITS_AUTO, 100, 10, 1) == -1);
}

TEST(an_engine_refuses_the_plan_of_another_rank)
{
    test_run run;
    zero_engine other;
    test_run_open(&run, &test_standard, test_size);
    zero_engine_spec spec = run.engine.spec;
    spec.plan.n_ranks = test_size + 1;
    assert_all(zero_engine_init(&other, &spec, run.comm) == ZERO_ERR_INVALID);
    spec.plan.rank = (spec.plan.rank + 1) % spec.plan.n_ranks;
    all_fail(zero_engine_init(&other, &spec, run.comm), ZERO_ERR_INVALID,
             "cannot run on rank");
    test_run_close(&run);
}
