#include "comm/wait.h"

#include <sched.h>

#include "base/fail.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/local.h"
#include "comm/mpi_error.h"
#include "comm/sigterm.h"
#include "comm/stall.h"
#include "comm/thread.h"

#define SPINS 200 /* turns before a waiting rank yields the processor */

/* The end of a collective or, if that is NULL, of a request. */
typedef struct {
    const zero_collective *op;
    MPI_Request *request;
} goal;

static zero_status is_reached(const goal *g, bool *reached)
{
    int ended = g->op && !g->op->is_active;
    if (!g->op)
        ZERO_TRY(zero_mpi_check(MPI_Test(g->request, &ended, MPI_STATUS_IGNORE),
                                "a message to all ranks"));
    *reached = ended != 0;
    return ZERO_OK;
}

static zero_status take_turn(zero_comm *comm, const goal *g, bool *reached)
{
    ZERO_TRY(zero_flight_poll(comm, NULL));
    ZERO_TRY(is_reached(g, reached));
    return *reached ? ZERO_OK : zero_stall_turn(comm);
}

/* One turn between threads of one process: sleeps if nothing could move. */
static zero_status take_local_turn(zero_comm *comm, const goal *g, bool *reached)
{
    int64_t moves = zero_local_moves(comm), advanced = comm->advanced;
    ZERO_TRY(take_turn(comm, g, reached));
    bool is_idle = !*reached && comm->advanced == advanced;
    return is_idle ? zero_local_rest(comm, moves) : ZERO_OK;
}

static void note(zero_comm *comm, zero_watch_state state, const zero_operation *what)
{
    zero_thread_lock(comm);
    zero_stall_note(comm, state, what);
    zero_thread_unlock(comm);
}

static zero_status wait_for(const goal *g, zero_comm *group, zero_watch_state state,
                            const zero_operation *what)
{
    zero_comm *comm = zero_family_whole(group);
    bool reached = false;
    zero_sigterm sigterm = {.last_look = 0.0};
    note(comm, state, what);
    while (comm->local && !reached) ZERO_TRY(take_local_turn(comm, g, &reached));
    for (int turns = 0; !reached;) {
        zero_thread_lock(comm);
        zero_status st = take_turn(comm, g, &reached);
        if (turns == SPINS && !reached)
            zero_sigterm_turn(&sigterm, comm->advanced, comm->patience);
        zero_thread_unlock(comm);
        ZERO_TRY(st);
        if (turns < SPINS)
            turns++;
        else if (!reached)
            sched_yield();
    }
    note(comm, ZERO_WATCH_COMPUTING, what);
    return ZERO_OK;
}

zero_status zero_wait_collective(zero_collective *op)
{
    zero_operation what = zero_flight_operation(op);
    return wait_for(&(goal){.op = op}, op->comm, ZERO_WATCH_WAITING, &what);
}

zero_status zero_wait_request(zero_comm *comm, zero_watch_state state,
                              const zero_operation *what, MPI_Request *request)
{
    return wait_for(&(goal){.request = request}, comm, state, what);
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
