/* thread.h - a thread that works on a group in turns with the group's owner.
 *
 * The owner is the one thread that uses the group. Both hold the group's lock while they
 * work on it. A family (divide.h) has one thread and one lock. A group without a thread has
 * no lock to take. For the other files of comm/; progress.h starts the thread. */
#pragma once

#include "comm/group.h"
#include "zero/status.h"

/* Starts a thread that calls `work` once per period while collectives are in flight, ten
 * times a second while a watchdog runs, and sleeps otherwise. A failure of `work` ends the
 * thread. Local. ZERO_ERR_NOMEM; ZERO_ERR_ENV if the thread cannot be started. */
ZERO_NODISCARD zero_status zero_thread_start(zero_comm *comm, double period_seconds,
                                             zero_status (*work)(zero_comm *));
void zero_thread_stop(zero_comm *comm); /* accepts a group without a thread */

/* Recursive. */
void zero_thread_lock(const zero_comm *comm);
void zero_thread_unlock(const zero_comm *comm);

/* Tells the thread that there is work now. The caller holds the lock. */
void zero_thread_wake(const zero_comm *comm);

/* The failure that ended the thread, if any. The caller holds the lock. */
ZERO_NODISCARD zero_status zero_thread_failure(const zero_comm *comm);
