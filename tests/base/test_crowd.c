/* When a thread that waits sleeps, because others keep its core. */
#include "support/test.h"

#include "base/clock.h"
#include "base/crowd.h"

#include <time.h>

#define LONG  7e-3 /* seconds */
#define SHORT 1e-6

static void learn(zero_crowd *crowd, double seconds)
{
    zero_crowd_learn(crowd, seconds, zero_clock_seconds());
}

TEST(two_long_yields_in_a_row_are_a_crowd)
{
    zero_crowd crowd = {0};
    assert_false(zero_crowd_is_there(&crowd));
    for (int i = 0; i < 5; i++) {
        learn(&crowd, LONG); /* the system's own work */
        assert_false(zero_crowd_is_there(&crowd));
        learn(&crowd, SHORT);
    }
    learn(&crowd, LONG);
    learn(&crowd, LONG);
    assert_true(zero_crowd_is_there(&crowd));
}

TEST(a_crowd_is_forgotten_and_found_again)
{
    const struct timespec second = {.tv_sec = 1};
    zero_crowd crowd = {0};
    learn(&crowd, LONG);
    learn(&crowd, LONG);
    nanosleep(&second, NULL);
    assert_false(zero_crowd_is_there(&crowd));
    learn(&crowd, LONG);
    assert_false(zero_crowd_is_there(&crowd));
    learn(&crowd, LONG);
    assert_true(zero_crowd_is_there(&crowd));
}

TEST(a_yield_and_a_sleep_return)
{
    zero_crowd crowd = {0};
    for (int i = 0; i < 100; i++) zero_crowd_yield(&crowd);
    zero_crowd_sleep();
}
