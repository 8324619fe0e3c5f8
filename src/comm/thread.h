/* thread.h - a thread that keeps collectives moving while nobody polls or waits.
 *
 * For programs that cannot poll often enough. It sleeps while nothing is in flight, and
 * longer the longer that lasts; otherwise it polls the family once per period, unless a
 * thread of the program waits and so polls anyway. With a watchdog it also answers the
 * other ranks, ten times a second.
 *
 * All threads that use a group hold the family's lock while they work on it. A group
 * without a thread has no lock to take. With works (works.h) every call of MPI's is made
 * under the lock, so level SERIALIZED does; small messages (control.h) are posted without
 * it, so with them MPI must run at level MULTIPLE (zero_launch_start_threaded), and their
 * owner is the one other thread that uses the group. */
#pragma once

#include "comm/group.h"

/* Local. comm must not be moved in memory from now on. ZERO_ERR_INVALID unless 0 < period
 * <= 1 s, or if there is a thread already, or comm is a part (divide.h), whose whole has
 * the thread; ZERO_ERR_UNSUPPORTED if MPI does not run at level MULTIPLE; ZERO_ERR_NOMEM;
 * ZERO_ERR_ENV if no thread can be started. A failure in the thread ends it, and is
 * reported by the group's next poll or wait. */
zero_status zero_progress_start(zero_comm *comm, double period_seconds);

/* The same for works: polls often, and needs level SERIALIZED only (else
 * ZERO_ERR_UNSUPPORTED). Does nothing if there is a thread. Any thread may call it. */
zero_status zero_thread_need(zero_comm *comm);

/* Local; accepts a group without a thread. */
void zero_progress_stop(zero_comm *comm);

/* ---- for the other files of comm/ ---- */

/* Recursive. */
void zero_thread_lock(const zero_comm *comm);
void zero_thread_unlock(const zero_comm *comm);

/* Takes the lock if no other thread has it. One that waits for an end gives way to one that
 * begins, which would otherwise seldom find it free. */
bool zero_thread_try_lock(const zero_comm *comm);

/* Tells the thread that there is work now. The caller holds the lock. */
void zero_thread_wake(const zero_comm *comm);

/* From here on, until it says so again with -1, one more thread waits and polls. */
void zero_thread_waits(const zero_comm *comm, int one);

/* Keeps a failure for all who ask from here on, unless there is one. The caller holds the
 * lock. */
void zero_thread_fail(const zero_comm *comm, zero_status st);

/* That failure, if any: it also ended the thread. The caller holds the lock. */
zero_status zero_thread_failure(const zero_comm *comm);
