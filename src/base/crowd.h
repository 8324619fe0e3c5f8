/* crowd.h - how a thread that waits leaves its core to others.
 *
 * How long a yield takes shows who else wants the core: nobody (1 us), ranks that wait, too
 * (some us each), or a process that computes and keeps it for its whole turn. Linux counts
 * a yield as a turn of ours: beside two that compute the core is back after 6 to 8 ms, at
 * every wait. A thread that sleeps has kept its claim, and has the core soon after it wakes.
 *
 *     no crowd   look, look, look ...   yield, look, yield, look ...
 *     a crowd    look, sleep, look, sleep ...       for half a second, then yields try */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Shared by threads that wait for each other: whether one of them has found a crowd. Starts
 * zeroed. */
typedef struct {
    _Atomic double until; /* on the clock: there is a crowd until then */
    atomic_int lost;      /* yields in a row that took long */
} zero_crowd;

/* True while a thread that waits should sleep at once. */
bool zero_crowd_is_there(zero_crowd *crowd);

/* Yields the core, and learns from it. */
void zero_crowd_yield(zero_crowd *crowd);

/* Tells it that a yield has ended now, and how many seconds the yield took. */
void zero_crowd_learn(zero_crowd *crowd, double seconds, double now);

/* Sleeps for the shortest time that the system knows: about 50 us. */
void zero_crowd_sleep(void);
