/* progress.h - a thread that keeps collectives moving while the program does not poll.
 *
 * For programs that cannot poll often enough. It sleeps while nothing is in flight and
 * polls the group once per period otherwise; with a watchdog it also answers the other
 * ranks, ten times a second. MPI must run at thread level MULTIPLE
 * (zero_launch_start_threaded). */
#pragma once

#include "zero/comm.h"
#include "zero/status.h"

/* Local. comm must not be moved in memory from now on. ZERO_ERR_INVALID unless 0 < period
 * <= 1 s, or if there is a thread already, or comm is a part (divide.h), whose whole has
 * the thread; ZERO_ERR_UNSUPPORTED if MPI does not run at level MULTIPLE; ZERO_ERR_ENV if
 * no thread can be started. A failure in the thread is reported by the group's next poll or
 * wait. */
ZERO_NODISCARD zero_status zero_progress_start(zero_comm *comm, double period_seconds);

/* Local; accepts a group without a thread. */
void zero_progress_stop(zero_comm *comm);
