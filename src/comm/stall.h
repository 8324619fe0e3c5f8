/* stall.h - the watchdog at work: what each rank is doing, who asks whom, and the verdict.
 *
 * For the other files of comm/; watch.h tells how it works, and starts and stops it. The
 * caller holds the group's lock (thread.h) unless a function says otherwise. The groups are
 * wholes of families (divide.h). One without a watchdog is accepted everywhere but where it
 * stops. */
#pragma once

#include "comm/group.h"
#include "comm/operation.h"
#include "comm/verdict.h"
#include "zero/status.h"

/* Records what this rank is doing from now on: computing after, or waiting for, `op`. */
void zero_stall_note(zero_comm *comm, zero_watch_state state, const zero_operation *op);

/* Records which piece of work this rank is in: "step" (borrowed), 17. */
void zero_stall_work(zero_comm *comm, const char *what, int64_t number);

/* Answers the other ranks, at most every 10 ms. Never blocks. */
ZERO_NODISCARD zero_status zero_stall_look(zero_comm *comm);

/* One turn of a wait, after a look: ZERO_ERR_STALLED once the wait has stalled for too
 * long. */
ZERO_NODISCARD zero_status zero_stall_turn(zero_comm *comm);

/* ---- for watch.c ---- */

/* Local. *out may be half built after a failure. Release with _free. */
ZERO_NODISCARD zero_status zero_stall_make(int size, double limit, struct zero_watch **out);
void zero_stall_free(struct zero_watch *w); /* accepts NULL */

/* Collective; takes the lock itself. On success the group owns `w`. */
ZERO_NODISCARD zero_status zero_stall_start(zero_comm *comm, struct zero_watch *w);

/* Collective, after all ranks have reached the end: begin posts *request, which tells how
 * many queries were sent to this rank; end receives the messages still on their way and
 * frees the watchdog. */
ZERO_NODISCARD zero_status zero_stall_begin_stop(zero_comm *comm, MPI_Request *request);
ZERO_NODISCARD zero_status zero_stall_end_stop(zero_comm *comm);
