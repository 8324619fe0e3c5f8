#include "base/crowd.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

#define LONG_YIELD 0.5e-3 /* seconds: somebody has had a turn */
#define IN_A_ROW   2      /* long yields: one may be the system's own work */
#define HOLDS      0.5    /* seconds that a finding holds: to find it costs some 15 ms */

bool zero_crowd_is_there(zero_crowd *crowd)
{
    const double until = atomic_load_explicit(&crowd->until, memory_order_relaxed);
    if (!(until > 0.0)) return false;
    if (zero_clock_seconds() < until) return true;
    atomic_store_explicit(&crowd->until, 0.0, memory_order_relaxed);
    return false;
}

void zero_crowd_yield(zero_crowd *crowd)
{
    const double start = zero_clock_seconds();
    sched_yield();
    const double end = zero_clock_seconds();
    if (end - start < LONG_YIELD) {
        atomic_store_explicit(&crowd->lost, 0, memory_order_relaxed);
    } else if (atomic_fetch_add_explicit(&crowd->lost, 1, memory_order_relaxed) + 1 >=
               IN_A_ROW) {
        atomic_store_explicit(&crowd->lost, 0, memory_order_relaxed);
        atomic_store_explicit(&crowd->until, end + HOLDS, memory_order_relaxed);
    }
}

void zero_crowd_sleep(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL); /* and the timer's slack */
}
