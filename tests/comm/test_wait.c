/* The one loop in which a rank waits: how it leaves its core to threads of its own process. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "comm/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "support/test_world.h"

/* How often this thread has given up its core to sleep; a yield does not count. */
static long sleeps(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_THREAD, &used), 0);
    return used.ru_nvcsw;
}

static bool is_crowded(void)
{
    return atomic_load(&world.crowd.until) > 0.0;
}

/* How often a wait of 0.2 s sleeps. *crowded: other processes wanted the core, which makes it
 * sleep, too; may be NULL. */
static long sleeps_of_a_wait(bool naps, bool *crowded)
{
    const bool never = false;
    const zero_operation what = {0};
    const zero_awaited awaited = {
        .done = &never, .until = zero_clock_seconds() + 0.2, .naps = naps};
    bool ended;
    const bool was_crowded = is_crowded();
    const long before = sleeps();
    assert_ok(zero_wait_until(&world, ZERO_WATCH_WAITING, &what, &awaited, &ended));
    assert_false(ended);
    if (crowded) *crowded = was_crowded || is_crowded();
    return sleeps() - before;
}

static void *compute(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) continue;
    return NULL;
}

TEST(a_wait_naps_while_another_thread_computes)
{
    atomic_bool stop = false;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, compute, &stop), 0);
    const long beside = sleeps_of_a_wait(true, NULL);
    atomic_store(&stop, true);
    pthread_join(other, NULL);
    assert_all(beside >= 50); /* of some thousand, on cores that others use, too */
}

TEST(a_wait_polls_where_no_thread_computes)
{
    bool crowded;
    const long alone = sleeps_of_a_wait(true, &crowded);
    assert_all(alone < 50 || crowded);
}

TEST(a_wait_that_may_not_nap_polls)
{
    atomic_bool stop = false;
    bool crowded;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, compute, &stop), 0);
    const long beside = sleeps_of_a_wait(false, &crowded);
    atomic_store(&stop, true);
    pthread_join(other, NULL);
    assert_all(beside < 50 || crowded);
}
