#include "base/crowd.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define LONG_YIELD 0.5e-3 /* seconds: somebody has had a turn */
#define IN_A_ROW   2      /* long yields: one may be the system's own work */
#define HOLDS      0.5    /* seconds that a finding holds: to find it costs some 15 ms */
#define SHORT_TURN 100000 /* nanoseconds; the shortest that Linux knows */

bool zero_crowd_is_there(zero_crowd *crowd)
{
    const double until = atomic_load_explicit(&crowd->until, memory_order_relaxed);
    if (!(until > 0.0)) return false;
    if (zero_clock_seconds() < until) return true;
    atomic_store_explicit(&crowd->until, 0.0, memory_order_relaxed);
    return false;
}

#ifdef __linux__
/* The operand of sched_setattr(2). */
typedef struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice, deadline, period; /* nanoseconds */
} attributes;

/* Linux (6.12 and later) gives a thread that wants short turns the core sooner, and no more
 * of it. Where it does not know that, nothing changes. */
static void ask_for_short_turns(void)
{
    attributes a = {.size = sizeof a};
    if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0 || a.policy != SCHED_OTHER)
        return;
    a.slice = SHORT_TURN;
    syscall(SYS_sched_setattr, 0, &a, 0);
}
#else
static void ask_for_short_turns(void)
{
}
#endif

void zero_crowd_learn(zero_crowd *crowd, double seconds, double now)
{
    const bool is_long = seconds >= LONG_YIELD;
    const int before = atomic_load_explicit(&crowd->lost, memory_order_relaxed);
    const int lost = is_long ? before + 1 : 0;
    atomic_store_explicit(&crowd->lost, lost % IN_A_ROW, memory_order_relaxed);
    if (lost < IN_A_ROW) return;
    atomic_store_explicit(&crowd->until, now + HOLDS, memory_order_relaxed);
    ask_for_short_turns();
}

void zero_crowd_yield(zero_crowd *crowd)
{
    const double start = zero_clock_seconds();
    sched_yield();
    const double end = zero_clock_seconds();
    zero_crowd_learn(crowd, end - start, end);
}

void zero_crowd_sleep(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL); /* and the timer's slack */
}
