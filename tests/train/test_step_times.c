

#include "support/test.h"

#include "train/step_times.h"

static zero_step_time of(int n, const double *seconds)
{
    zero_step_times t;
    assert_ok(zero_step_times_init(&t, n));
    for (int i = 0; i < n; i++) zero_step_times_add(&t, seconds[i]);
    zero_step_time time = zero_step_times_end(&t);
    zero_step_times_destroy(&t);
    return time;
}

TEST(the_first_three_steps_do_not_count)
{
    zero_step_time t = of(8, (double[]){100, 100, 100, 5, 1, 3, 4, 2});
    assert_true(t.median == 3 && t.lower == 2 && t.upper == 4);
    assert_true(t.n == 5 && t.first == 3 && t.before == 0);
    t = of(5, (double[]){100, 100, 100, 1, 2});
    assert_true(t.median == 1.5 && t.lower == 1.25 && t.upper == 1.75 && t.n == 2);
}

TEST(a_run_of_three_steps_or_fewer_counts_them_all)
{
    zero_step_time t = of(3, (double[]){3, 1, 2});
    assert_true(t.median == 2 && t.n == 3 && t.first == 0 && t.before == 0);
    t = of(1, (double[]){7});
    assert_true(t.median == 7 && t.lower == 7 && t.upper == 7 && t.n == 1);
    t = of(4, (double[]){9, 9, 9, 4});
    assert_true(t.median == 4 && t.n == 1 && t.first == 3);
}

TEST(the_last_steps_of_a_very_long_run_count)
{
    zero_step_times t;
    int64_t n = 2 * ZERO_STEP_TIMES_MOST + 10;
    assert_ok(zero_step_times_init(&t, n));
    for (int64_t i = 0; i < n; i++)
        zero_step_times_add(&t, i < n - ZERO_STEP_TIMES_MOST ? 100.0 : 1.0);
    zero_step_time time = zero_step_times_end(&t);
    assert_true(time.median == 1.0 && time.lower == 1.0 && time.upper == 1.0);
    assert_true(time.n == ZERO_STEP_TIMES_MOST && time.first == 3);
    assert_true(time.before == n - 3 - ZERO_STEP_TIMES_MOST);
    zero_step_times_destroy(&t);
}
