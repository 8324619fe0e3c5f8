#include "comm/wait.h"

#include <sched.h>

#include "base/fail.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/local.h"
#include "comm/mpi_error.h"
#include "comm/sigterm.h"
#include "comm/thread.h"
#include "comm/watch.h"

#define SPINS 200 /* turns before a waiting rank yields the processor */

static void note(zero_comm *comm, zero_watch_state state, const zero_operation *what)
{
    zero_thread_lock(comm);
    zero_watch_note(comm, state, what);
    zero_thread_unlock(comm);
}

/* Waits for the end of a collective or, if that is NULL, of a request. Between threads of
 * one process it sleeps if nothing could move. */
static zero_status wait_for(const zero_collective *op, MPI_Request *request,
                            zero_comm *group, zero_watch_state state,
                            const zero_operation *what)
{
    zero_comm *comm = zero_family_whole(group);
    bool reached = false;
    zero_sigterm sigterm = {.last_look = 0.0};
    note(comm, state, what);
    for (int turns = 0; !reached;) {
        int64_t moves = comm->local ? zero_local_moves(comm) : 0;
        int64_t advanced = comm->advanced;
        zero_thread_lock(comm);
        zero_status st = zero_flight_poll(comm, NULL);
        int ended = op && !op->is_active;
        if (st == ZERO_OK && !op)
            st = zero_mpi_check(MPI_Test(request, &ended, MPI_STATUS_IGNORE),
                                "a message to all ranks");
        reached = st == ZERO_OK && ended;
        if (st == ZERO_OK && !reached) st = zero_watch_turn(comm);
        if (turns == SPINS && !reached)
            zero_sigterm_turn(&sigterm, comm->advanced, comm->patience);
        zero_thread_unlock(comm);
        ZERO_TRY(st);
        if (reached) break;
        if (comm->local && comm->advanced == advanced)
            ZERO_TRY(zero_local_rest(comm, moves));
        else if (!comm->local && turns < SPINS)
            turns++;
        else if (!comm->local)
            sched_yield();
    }
    note(comm, ZERO_WATCH_COMPUTING, what);
    return ZERO_OK;
}

zero_status zero_wait_collective(zero_collective *op)
{
    zero_operation what = zero_flight_operation(op);
    return wait_for(op, NULL, op->comm, ZERO_WATCH_WAITING, &what);
}

zero_status zero_wait_request(zero_comm *comm, zero_watch_state state,
                              const zero_operation *what, MPI_Request *request)
{
    return wait_for(NULL, request, comm, state, what);
}

zero_status zero_wait_message(zero_comm *comm, const zero_operation *what,
                              MPI_Request *request)
{
    zero_status st = zero_wait_request(comm, ZERO_WATCH_WAITING, what, request);
    if (st == ZERO_OK || *request == MPI_REQUEST_NULL) return st;
    MPI_Cancel(request);
    MPI_Request_free(request);
    return st;
}

/* Counts the message and waits for it. */
static zero_status end_message(zero_comm *comm, zero_operation_kind kind, int peer,
                               bool is_sent, size_t bytes, MPI_Request *request)
{
    zero_operation what =
        zero_operation_control(kind, comm->control_sequence - 1, (int64_t)bytes, -1);
    zero_traffic_count(&comm->traffic[ZERO_CONTROL],
                       zero_reach_of(&comm->layout, comm->rank, peer), is_sent, !is_sent,
                       (int64_t)bytes);
    return zero_wait_message(comm, &what, request);
}

zero_status zero_wait_send(zero_comm *comm, zero_operation_kind kind, int to,
                           const void *data, size_t bytes)
{
    MPI_Request request;
    ZERO_TRY(zero_mpi_check(
        MPI_Isend(data, (int)bytes, MPI_BYTE, to, ZERO_WAIT_TAG, comm->control, &request),
        "MPI_Isend of a small message"));
    return end_message(comm, kind, to, true, bytes, &request);
}

zero_status zero_wait_receive(zero_comm *comm, zero_operation_kind kind, int from,
                              void *data, size_t bytes)
{
    MPI_Request request;
    ZERO_TRY(zero_mpi_check(
        MPI_Irecv(data, (int)bytes, MPI_BYTE, from, ZERO_WAIT_TAG, comm->control, &request),
        "MPI_Irecv of a small message"));
    return end_message(comm, kind, from, false, bytes, &request);
}
