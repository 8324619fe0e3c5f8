/* team.h - the threads of a rank: OpenMP is here and in team.c alone.
 *
 * A call of the cpu backend is computed by a team of zero_math.threads. What belongs to
 * different rows, columns, heads or elements is dealt to them; a sum never is, so any
 * number of threads gives the bits of one. The first thread is the one that made the call.
 * It alone polls, so MPI sees one thread.
 *
 *     first thread   piece poll piece poll piece poll       | all wait for all, once per
 *                                                           call
 *     second         piece piece piece piece                |
 *
 * Nothing here allocates, but the runtime does when it starts its threads: at the first
 * call. */
#pragma once

#include <stdatomic.h>

#include "math/backend.h"

/* Whether this build has threads. */
bool zero_team_is_built(void);

/* One thread within a call. */
typedef struct {
    zero_math
        math; /* with a scratch of its own, and for one thread; polls if it is the first */
    int index, size;
} zero_thread;

typedef void zero_thread_work(const zero_thread *thread, void *arg);

/* All threads of math do the work; returns when the last has ended.
 *
 * A call that is made in a poll of another one is done by the calling thread alone: the
 * others are in the outer call. It has no scratch, since the outer call's numbers are
 * there. */
void zero_team_run(const zero_math *math, zero_thread_work *work, void *arg);

/* Has `work` done in the calling thread, while the others wait for calls of this math, and
 * for nothing else (meet.h): without it each call begins and ends with OpenMP's own waits,
 * which take the cores of others. Within another call of it, and for one thread, it only
 * has `work` done. */
void zero_team_hold(zero_math *math, void (*work)(void *arg), void *arg);

/* Until all threads of the team are here. */
void zero_thread_wait(const zero_thread *thread);

/* Elements [first, end), or rows, or columns. */
typedef struct {
    int64_t first, end;
} zero_share_of_team;

/* This thread's share of n, in whole granules but for the last; all are about equal. */
static inline zero_share_of_team zero_thread_share(const zero_thread *t, int64_t n,
                                                   int64_t granule)
{
    const int64_t granules = zero_divide_up(n, granule);
    const int64_t first = granules * t->index / t->size * granule;
    const int64_t end = granules * (t->index + 1) / t->size * granule;
    return (zero_share_of_team){zero_min(first, n), zero_min(end, n)};
}

/* Work on elements, rows or columns [first, end), by one thread with its own scratch. */
typedef void zero_range_work(const zero_math *math, const void *arg, int64_t first,
                             int64_t end);

/* All threads work on their shares of n. */
void zero_team_share(const zero_math *math, int64_t n, int64_t granule,
                     zero_range_work *work, const void *arg);

/* Granules of columns, and of elements, in shares: whole cache lines, so that no two
 * threads write to one. */
#define ZERO_TEAM_LINE 64

/* Numbers that are given to whoever asks next. */
typedef _Atomic int64_t zero_turns;

static inline int64_t zero_turns_take(zero_turns *turns)
{
    return atomic_fetch_add_explicit(turns, 1, memory_order_relaxed);
}
