/* meet.h - how threads of a team wait for each other: for a number that one of them will
 * set.
 *
 *     looks, 10 us     the usual end of a wait: shares of a call take about equally long
 *     yields, 200 us   where there are more threads than cores the one waited for has a
 *                      turn
 *     sleeps           while the rank waits for other ranks, or computes with one thread
 *
 * OpenMP's own waits look for milliseconds, and nothing but its environment changes that: 4
 * ranks of 2 threads on 2 cores then took 9 times as long (bench/results). */
#pragma once

#include <pthread.h>

#include "base/crowd.h"

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int sleepers;
    zero_crowd crowd;
} zero_meet;

/* A number that only grows, in a cache line of its own. */
typedef struct {
    _Alignas(64) atomic_uint value;
} zero_meet_number;

/* Returns 0, or the system's error. */
int zero_meet_init(zero_meet *meet);
void zero_meet_destroy(zero_meet *meet);

/* Waits until the number is `value`; what was written before it was set is seen then. */
void zero_meet_wait(zero_meet *meet, zero_meet_number *number, unsigned value);

/* Sets the number, and wakes those who sleep. */
void zero_meet_set(zero_meet *meet, zero_meet_number *number, unsigned value);
