/* watch.h - a watchdog: a job in which nothing moves any more ends, and says where each
 * rank is.
 *
 * A rank that has waited for `seconds` without progress (no step run, no message ended)
 * asks all others what they are doing. Ranks answer while they wait and whenever they poll,
 * so a rank that does not answer is dead, stopped or in code that does not poll. After a
 * few seconds the rank that asked fails with ZERO_ERR_STALLED; the text tells about every
 * rank.
 *
 *     rank 0   waits ......... limit, asks | grace, fails -> the program prints, and aborts
 *     rank 1   waits ......... answers     | withholds its own verdict
 *     rank 2   is stopped
 *
 * One rank speaks: a rank that is queried first withholds its own query for a while, and of
 * two that ask at once the higher one gives way. A rank that receives ZERO_ERR_STALLED
 * aborts at once; the call's buffers still belong to MPI.
 *
 * Waiting time is counted in turns of the waiting loop, each of which counts little, so a
 * job that is suspended as a whole and continued has not waited.
 *
 * The watchdog covers the waits of collective.h and control.h on this group and its family
 * (divide.h); it names ranks by their numbers in the whole, and the group of an operation.
 * Calls that block inside MPI, such as those that make groups, a rank that computes for
 * ever, and files that do not answer are limited by a program's deadline (deadline.h), with
 * one rank, too. */
#pragma once

#include "comm/verdict.h"

/* Collective over comm, which must not be moved in memory from now on. Does nothing on a
 * group of one rank or if `seconds` is 0. ZERO_ERR_INVALID if it is negative, or comm is
 * watched already or is a part (divide.h), whose whole is watched. The limit should be
 * longer than the launcher's keepalive: an abort into a network that is cut hangs. */
zero_status zero_watch_start(zero_comm *comm, double seconds);

/* Collective over comm; waits for all ranks, under the watchdog. Does nothing where none
 * runs. */
zero_status zero_watch_stop(zero_comm *comm);

/* From now on this rank computes "`what` `number`" (`what` borrowed), such as step 17;
 * NULL: no more. It moves when it says so, and while it waits under the watchdog; a
 * program's deadline (deadline.h) ends a rank that does not move. Local, and costs
 * nothing. */
void zero_watch_compute(zero_comm *comm, const char *what, int64_t number);
void zero_watch_move(zero_comm *comm);

/* Tells the watchdog that this rank now works on "`what` `number`", such as step 17. `what`
 * is borrowed, and the same on all ranks. Local, and costs nothing. */
void zero_watch_work(zero_comm *comm, const char *what, int64_t number);

/* ---- for the other files of comm/ ----
 *
 * The caller holds the group's lock (thread.h); groups are wholes of families (divide.h).
 * One without a watchdog is accepted. */

/* Records what this rank is doing from now on: computing after, or waiting for, `op`. */
void zero_watch_note(zero_comm *comm, zero_watch_state state, const zero_operation *op);

/* Answers the other ranks, at most every 10 ms. Never blocks. */
zero_status zero_watch_look(zero_comm *comm);

/* One turn of a wait, after a look: ZERO_ERR_STALLED once the wait has stalled for too
 * long. */
zero_status zero_watch_turn(zero_comm *comm);

void zero_watch_set_limit(zero_comm *comm, double seconds); /* more than 0 */

void zero_watch_free(struct zero_watch *w); /* accepts NULL; without the lock */
