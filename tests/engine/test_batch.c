/* The samples that a run reads, the cut of the global batch, and dropout. */
#include "support/engine_test.h"

#define STEPS 3

static test_setup with_accumulation(int M)
{
    test_setup setup = test_standard;
    setup.plan.accumulation = M;
    return setup;
}

/* ---- how the global batch is cut ---- */

#define GLOBAL_BATCH 12

typedef struct {
    double loss[STEPS], norm[STEPS], evaluated;
} trajectory;

static trajectory train(const test_setup *setup, int n_ranks)
{
    trajectory t = {.evaluated = 0.0};
    test_run run;
    test_run_open(&run, setup, n_ranks);
    zero_source source = test_words(&run);
    zero_status st = ZERO_OK;
    if (test_run_member(&run))
        st = zero_engine_evaluate(&run.engine, &source, &t.evaluated);
    all_ok(st);
    for (int step = 0; step < STEPS; step++) {
        test_run_steps(&run, step, 1);
        t.loss[step] = run.last.loss;
        t.norm[step] = run.last.grad_norm;
    }
    test_run_close(&run);
    MPI_Bcast(&t, (int)sizeof t, MPI_BYTE, 0, MPI_COMM_WORLD);
    return t;
}

static bool close_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/* The oracle computes each sample by itself: only the order of the sum of losses differs. */
TEST(losses_do_not_depend_on_how_the_global_batch_is_cut)
{
    test_setup setup = test_standard;
    setup.plan.stage = test_size % 4; /* some deal microbatches otherwise */
    setup.backend = &zero_backend_naive;
    setup.shape.dropout = 0.1f; /* masks belong to samples, not to ranks */
    setup.plan.micro_batch = GLOBAL_BATCH;
    trajectory want = train(&setup, 1);
    for (int n = 1; n <= test_size; n++)
        for (int M = 1; M <= GLOBAL_BATCH / n; M++) {
            if (GLOBAL_BATCH % (n * M) != 0) continue;
            setup.plan.accumulation = M;
            setup.plan.micro_batch = GLOBAL_BATCH / (n * M);
            trajectory got = train(&setup, n);
            assert_all(close_to(got.loss[0], want.loss[0], 1e-13));
            assert_all(close_to(got.evaluated, want.evaluated, 1e-13));
            for (int step = 0; step < STEPS; step++) {
                assert_all(close_to(got.loss[step], want.loss[step], 1e-5));
                assert_all(close_to(got.norm[step], want.norm[step], 1e-5));
            }
        }
}

/* The steps and samples that a rank asked its source for, in order. */
struct log {
    int64_t step[64], sample[64];
    int n;
};

static void logged_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                          void *targets)
{
    struct log *log = *(struct log *const *)arg;
    assert_true(log->n < 64);
    log->step[log->n] = step;
    log->sample[log->n++] = i;
    memset(inputs, 0, (size_t)T * sizeof(int32_t));
    memset(targets, 0, (size_t)T * sizeof(int32_t));
}

/* A rank gets neighbouring microbatches if it holds gradients whole, else every N_d-th. */
TEST(a_rank_reads_its_microbatches_in_order)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = with_accumulation(3);
        struct log log = {.n = 0}, *where = &log;
        zero_source source = {.sample = logged_sample, .arg = &where};
        test_run run;
        setup.plan.stage = stage;
        test_run_open(&run, &setup, test_size);
        test_run_steps_on(&run, &source, 7, 1);
        assert_int_equal(log.n, 6);
        for (int k = 0; k < log.n; k++) {
            int m = k / 2, here = zero_stage_at(stage)->gradients == ZERO_HOLD_WHOLE
                                      ? 3 * test_rank + m
                                      : test_size * m + test_rank;
            assert_true(log.step[k] == 7 && log.sample[k] == 2 * here + k % 2);
        }
        test_run_close(&run);
    }
}

TEST(an_evaluation_reads_every_sample_of_step_0_once)
{
    test_setup setup = with_accumulation(3);
    struct log log = {.n = 0}, *where = &log;
    zero_source source = {.sample = logged_sample, .arg = &where};
    test_run run;
    double loss;
    test_run_open(&run, &setup, test_size);
    all_ok(zero_engine_evaluate(&run.engine, &source, &loss));
    int total = 2 * 3 * 2 * test_size, reads[2 * 3 * 2 * 16] = {0};
    assert_true(test_size <= 16);
    for (int k = 0; k < log.n; k++) {
        assert_true(log.step[k] == 0 && log.sample[k] < total);
        reads[log.sample[k]]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, reads, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < total; i++) assert_all(reads[i] == 1);
    test_run_close(&run);
}

/* ---- dropout ---- */

TEST(dropout_repeats_itself_and_acts_in_training_only)
{
    test_setup plain = test_standard, dropped = test_standard, other = test_standard;
    dropped.shape.dropout = other.shape.dropout = 0.2f;
    other.shape.seed++;
    test_digest want = test_digest_after(&dropped, test_size, STEPS);
    assert_all(test_same(test_digest_after(&dropped, test_size, STEPS), want));
    assert_all(!test_same(test_digest_after(&plain, test_size, STEPS), want));
    assert_all(!test_same(test_digest_after(&other, test_size, STEPS), want));

    trajectory without = train(&plain, test_size), with = train(&dropped, test_size);
    assert_all(with.evaluated == without.evaluated);
    assert_all(with.loss[0] != without.loss[0]);
}
