/* thread.h - a thread that keeps collectives moving while the program does not poll.
 *
 * For programs that cannot poll often enough. It sleeps while nothing is in flight and
 * polls the group once per period otherwise; with a watchdog it also answers the other
 * ranks, ten times a second. MPI must run at thread level MULTIPLE
 * (zero_launch_start_threaded).
 *
 * The owner is the one other thread that uses the group. Both hold the group's lock while
 * they work on it. A family (divide.h) has one thread and one lock. A group without a
 * thread has no lock to take. */
#pragma once

#include "comm/group.h"
#include "zero/status.h"

/* Local. comm must not be moved in memory from now on. ZERO_ERR_INVALID unless 0 < period
 * <= 1 s, or if there is a thread already, or comm is a part (divide.h), whose whole has
 * the thread; ZERO_ERR_UNSUPPORTED if MPI does not run at level MULTIPLE; ZERO_ERR_NOMEM;
 * ZERO_ERR_ENV if no thread can be started. A failure in the thread ends it, and is
 * reported by the group's next poll or wait. */
ZERO_NODISCARD zero_status zero_progress_start(zero_comm *comm, double period_seconds);

/* Local; accepts a group without a thread. */
void zero_progress_stop(zero_comm *comm);

/* ---- for the other files of comm/ ---- */

/* Recursive. */
void zero_thread_lock(const zero_comm *comm);
void zero_thread_unlock(const zero_comm *comm);

/* Tells the thread that there is work now. The caller holds the lock. */
void zero_thread_wake(const zero_comm *comm);

/* The failure that ended the thread, if any. The caller holds the lock. */
ZERO_NODISCARD zero_status zero_thread_failure(const zero_comm *comm);
