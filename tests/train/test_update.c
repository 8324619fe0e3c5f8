/* Clipping, and the learning rate. What a step does to parameters, tests/golden shows. */
#include "support/engine_test.h"

#include "train/learning_rate.h"

static bool close_to(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

static double momentum_norm(test_run *run)
{
    double squares = 0.0;
    for (int g = 0; g < run->model.n_groups; g++) {
        const float *m = test_states(&run->engine, g).part[1];
        for (int64_t i = 0; i < run->model.groups[g].n_params; i++)
            squares += (double)m[i] * (double)m[i];
    }
    return sqrt(squares);
}

/* After the first step the momentum is (1 - beta1) times the clipped gradient. */
TEST(clipping_bounds_the_global_norm_and_spares_smaller_gradients)
{
    const double clips[] = {0.0, 1e-3, 1e6};
    for (size_t i = 0; i < COUNT(clips); i++) {
        test_setup setup = test_standard;
        setup.clip = clips[i];
        test_run run;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, 1);
        bool acts = clips[i] > 0.0 && clips[i] < run.last.grad_norm;
        double want = acts ? clips[i] : run.last.grad_norm;
        /* The 1e-6 that guards the division is a thousandth of the smallest clip. */
        assert_all(run.last.grad_norm > 0.1);
        assert_all(close_to(momentum_norm(&run), 0.1 * want, 1e-5));
        test_run_close(&run);
    }
}

/* ---- the learning rate ---- */

TEST(the_learning_rate_rises_evenly_and_falls_to_its_least)
{
    const zero_learning_rate lr = {.peak = 4.0, .least = 0.5, .warmup = 10, .steps = 110};
    for (int64_t s = 0; s < 10; s++)
        assert_true(close_to(zero_learning_rate_at(&lr, s), 0.4 * (double)(s + 1), 1e-14));
    assert_true(zero_learning_rate_at(&lr, 10) == 4.0);
    for (int64_t s = 11; s < 110; s++) {
        double mirror = zero_learning_rate_at(&lr, 119 - s);
        assert_true(zero_learning_rate_at(&lr, s) < zero_learning_rate_at(&lr, s - 1));
        /* Half a cosine is point-symmetric about its middle. */
        assert_true(close_to(zero_learning_rate_at(&lr, s) + mirror, 4.5, 1e-14));
    }
    assert_true(zero_learning_rate_at(&lr, 109) == 0.5);
}

TEST(other_decays_are_a_line_and_none)
{
    zero_learning_rate lr = {.peak = 4.0, .least = 0.5, .warmup = 10, .steps = 110};
    for (int64_t s = 0; s < 110; s++) {
        lr.decay = ZERO_DECAY_COSINE;
        double cosine = zero_learning_rate_at(&lr, s);
        lr.decay = ZERO_DECAY_LINEAR;
        double line = zero_learning_rate_at(&lr, s);
        lr.decay = ZERO_DECAY_NONE;
        double none = zero_learning_rate_at(&lr, s);
        assert_true(none == (s < 10 ? cosine : 4.0));
        assert_true(s >= 10 || line == cosine);
        if (s >= 10) assert_true(close_to(line, 4.0 - 3.5 / 99 * (double)(s - 10), 1e-14));
    }
    lr.decay = ZERO_DECAY_LINEAR;
    assert_true(zero_learning_rate_at(&lr, 10) == 4.0);
    assert_true(zero_learning_rate_at(&lr, 109) == 0.5);
    for (int i = 0; i <= ZERO_DECAY_NONE; i++)
        assert_int_equal(zero_decay_find(zero_decay_name_at(i)), i);
    assert_null(zero_decay_name_at(ZERO_DECAY_NONE + 1));
}

TEST(short_schedules_stay_between_least_and_peak)
{
    for (int64_t steps = 1; steps <= 5; steps++)
        for (int64_t warmup = 0; warmup <= 3 * steps + 2; warmup++) {
            zero_decay decay = (zero_decay)(warmup % 3);
            zero_learning_rate lr = {3.0, 1.0, warmup / 3, steps, decay};
            double most = 0.0;
            for (int64_t s = 0; s < steps; s++) {
                double rate = zero_learning_rate_at(&lr, s);
                assert_true(rate > 0.0 && rate <= 3.0);
                assert_true(s < warmup / 3 || rate >= 1.0);
                most = fmax(most, rate);
            }
            assert_true(most == 3.0);
        }
}
