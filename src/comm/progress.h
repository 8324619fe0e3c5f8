/* progress.h - a thread that lets collectives go on while nobody polls.
 *
 * For programs that cannot poll often enough. It sleeps while nothing is in flight, and polls
 * the group once per period otherwise; with a watchdog it also answers the others, ten times
 * a second. MPI must run at thread level MULTIPLE (zero_launch_start_threaded).
 *
 * The thread and its owner, the one thread that uses the group, take turns by a lock. Without
 * a thread there is none to take. */
#pragma once

#include "comm/comm.h"
#include "zero/status.h"

/* Local. comm stays where it is from now on. ZERO_ERR_INVALID unless 0 < period <= 1 s, or if
 * there is a thread already; ZERO_ERR_UNSUPPORTED if MPI does not run at level MULTIPLE;
 * ZERO_ERR_ENV if no thread can be had. What fails in the thread, fails in the group's next
 * poll or wait. */
ZERO_NODISCARD zero_status zero_progress_start(zero_comm *comm, double period_seconds);

/* Local; accepts a group without a thread. */
void zero_progress_stop(zero_comm *comm);

/* ---- for the other files of comm/ ---- */

void zero_progress_take_lock(const zero_comm *comm);
void zero_progress_release_lock(const zero_comm *comm);
void zero_progress_wake_thread(const zero_comm *comm);
ZERO_NODISCARD zero_status zero_progress_pass_failure(const zero_comm *comm);

/* May be taken again by who has it. */
static inline void zero_progress_lock(const zero_comm *comm)
{
    if (comm->thread) zero_progress_take_lock(comm);
}

static inline void zero_progress_unlock(const zero_comm *comm)
{
    if (comm->thread) zero_progress_release_lock(comm);
}

/* There is something in flight. The caller has the lock. */
static inline void zero_progress_wake(const zero_comm *comm)
{
    if (comm->thread) zero_progress_wake_thread(comm);
}

/* The failure of the thread, if it has met one. The caller has the lock. */
static inline zero_status zero_progress_failure(const zero_comm *comm)
{
    return comm->thread ? zero_progress_pass_failure(comm) : ZERO_OK;
}
