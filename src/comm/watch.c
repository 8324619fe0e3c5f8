#include "comm/watch.h"

#include "base/fail.h"
#include "comm/control.h"
#include "comm/deadline.h"
#include "comm/family.h"
#include "comm/stall.h"
#include "comm/thread.h"
#include "comm/wait.h"

zero_status zero_watch_start(zero_comm *comm, double seconds)
{
    ZERO_TRY(zero_family_check_whole(comm, "a watchdog"));
    if (!(seconds >= 0.0) || comm->watch)
        return zero_fail(ZERO_ERR_INVALID,
                         "a watchdog of %g s: expected 0 or more, and one per group",
                         seconds);
    if (seconds <= 0.0 || comm->size <= 1) return ZERO_OK;
    struct zero_watch *w;
    zero_status st = zero_agree(comm, zero_stall_make(comm->size, seconds, &w));
    if (st == ZERO_OK) st = zero_stall_start(comm, w);
    if (st != ZERO_OK) zero_stall_free(w);
    return st;
}

/* All ranks have reached the end, so no rank asks any more. */
static zero_status stop_locked(zero_comm *comm)
{
    MPI_Request request;
    zero_operation end =
        zero_operation_control(ZERO_OPERATION_END, comm->control_sequence - 1, 0, -1);
    zero_deadline_begin(comm->deadline, "ending the watchdog");
    ZERO_TRY(zero_stall_begin_stop(comm, &request));
    ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_WAITING, &end, &request));
    ZERO_TRY(zero_stall_end_stop(comm));
    zero_deadline_end(comm->deadline);
    return ZERO_OK;
}

zero_status zero_watch_stop(zero_comm *comm)
{
    if (!comm->watch) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    zero_thread_lock(comm);
    zero_status st = stop_locked(comm);
    zero_thread_unlock(comm);
    return st;
}

void zero_watch_compute(zero_comm *comm, const char *what, int64_t number)
{
    zero_deadline *d = zero_family_whole(comm)->deadline;
    if (what)
        zero_deadline_begin_work(d, what, number);
    else
        zero_deadline_end(d);
}

void zero_watch_move(zero_comm *comm)
{
    zero_deadline_move(zero_family_whole(comm)->deadline);
}

void zero_watch_work(zero_comm *comm, const char *what, int64_t number)
{
    zero_thread_lock(comm); /* the thread tells it to others */
    zero_stall_work(zero_family_whole(comm), what, number);
    zero_thread_unlock(comm);
}
