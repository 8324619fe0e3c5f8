/* watch.h - a watchdog: a job in which nothing moves any more ends, and says where each rank is.
 *
 * A rank that has waited for `seconds` without any progress (no step run, no message ended)
 * asks all others what they are doing. Ranks answer while they wait and whenever they poll,
 * so who does not answer is dead, stopped or in code that does not poll. After a few seconds
 * the rank that asked fails with ZERO_ERR_STALLED; the text tells about every rank.
 *
 *     rank 0   waits ......... limit, asks | grace, fails -> the program prints, and aborts
 *     rank 1   waits ......... answers     | holds back its own verdict
 *     rank 2   is stopped
 *
 * One rank speaks: who is asked before it asks holds back for a while, and of two that ask at
 * once the higher one gives way. Whoever receives ZERO_ERR_STALLED aborts at once; the call's
 * buffers still belong to MPI.
 *
 * Waiting time is counted in turns of the waiting loop, of which each counts little: a job
 * that is suspended as a whole and continued has not waited.
 *
 * Watched are the waits of collective.h and of the calls of comm.h that send small messages,
 * on this group only; making groups and windows is not. */
#pragma once

#include "comm/comm.h"
#include "comm/operation.h"
#include "comm/verdict.h"
#include "zero/status.h"

/* Collective over comm, which stays where it is from now on. Does nothing on a group of one
 * rank or if `seconds` is 0. ZERO_ERR_INVALID if it is negative, or comm is watched already.
 * A limit should be longer than the launcher's keepalive: an abort into a network that is cut
 * hangs. */
ZERO_NODISCARD zero_status zero_watch_start(zero_comm *comm, double seconds);

/* Collective over comm; waits for all, and watches that. Does nothing where none watches. */
ZERO_NODISCARD zero_status zero_watch_stop(zero_comm *comm);

/* From here on this rank works on what errors call "`what` `number`", such as step 17; `what` is
 * borrowed, and the same on all ranks. Local, and costs nothing; does nothing where none
 * watches. */
void zero_watch_work(zero_comm *comm, const char *what, int64_t number);

/* ---- for the other files of comm/; the caller holds the lock of progress.h ---- */

/* Records what this rank is doing from now on: computing after, or waiting for, `op`. */
void zero_watch_note(zero_comm *comm, zero_watch_state state, const zero_operation *op);

/* Answers the others, if it has not looked for 10 ms. Never blocks. */
ZERO_NODISCARD zero_status zero_watch_look(zero_comm *comm);

/* One turn of a wait, after a look: the wait's failure once it has stalled for too long. */
ZERO_NODISCARD zero_status zero_watch_turn(zero_comm *comm);
