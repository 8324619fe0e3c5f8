#include "comm/wait.h"

#include <sched.h>

#include "base/fail.h"
#include "comm/progress.h"
#include "comm/sigterm.h"

#define SPINS 200 /* turns before a waiting rank lets others have the processor */

typedef struct {
    const zero_collective *op; /* its end, or, if NULL, */
    MPI_Request *request;      /* that of this request */
} goal;

static zero_status is_reached(const goal *g, bool *reached)
{
    int ended = g->op && !g->op->is_active;
    if (!g->op)
        ZERO_TRY(zero_comm_check(MPI_Test(g->request, &ended, MPI_STATUS_IGNORE),
                                 "a message to all ranks"));
    *reached = ended != 0;
    return ZERO_OK;
}

static zero_status turn(zero_comm *comm, const goal *g, bool *reached)
{
    ZERO_TRY(zero_collective_poll(comm));
    ZERO_TRY(is_reached(g, reached));
    return *reached || !comm->watch ? ZERO_OK : zero_watch_turn(comm);
}

static void note(zero_comm *comm, zero_watch_state state, const zero_operation *what)
{
    zero_progress_lock(comm);
    if (comm->watch) zero_watch_note(comm, state, what);
    zero_progress_unlock(comm);
}

static zero_status wait(zero_comm *comm, zero_watch_state state, const zero_operation *what,
                        const goal *g)
{
    bool reached = false;
    zero_sigterm sigterm = {.last_look = 0.0};
    note(comm, state, what);
    for (int turns = 0; !reached;) {
        zero_progress_lock(comm);
        zero_status st = turn(comm, g, &reached);
        if (turns == SPINS && !reached)
            zero_sigterm_turn(&sigterm, comm->advanced, comm->patience);
        zero_progress_unlock(comm);
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
    zero_operation what = zero_operation_collective(&op->steps.spec, op->sequence);
    return wait(op->comm, ZERO_WATCH_WAITING, &what, &(goal){.op = op});
}

zero_status zero_wait_request(zero_comm *comm, zero_watch_state state,
                              const zero_operation *what, MPI_Request *request)
{
    return wait(comm, state, what, &(goal){.request = request});
}
