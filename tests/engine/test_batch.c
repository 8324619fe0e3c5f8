/* The cut of the global batch, and dropout. (Which samples a rank reads: test_any_run.c.) */
#include "support/engine_test.h"

#define STEPS 3

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
