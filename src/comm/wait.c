#include "comm/wait.h"

#include <time.h>

#include "base/clock.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/local.h"
#include "comm/mpi_error.h"
#include "comm/sigterm.h"
#include "comm/thread.h"
#include "comm/watch.h"

#define SPINS      200 /* turns before a waiting rank yields the processor */
#define NAPS_AFTER 4 /* turns before one sleeps beside a thread or process that computes */

#define OTHERS_EVERY 5e-4 /* seconds between looks at what other threads use */
#define OTHERS_LEAST 0.05 /* of a processor: they compute */

static void note(zero_comm *comm, zero_watch_state state, const zero_operation *what)
{
    zero_thread_lock(comm);
    zero_watch_note(comm, state, what);
    zero_thread_unlock(comm);
}

static bool is_idle(const zero_comm *comm)
{
    if (!comm->whole) return !zero_family_is_active(comm);
    return !comm->active && !comm->requests && !comm->undecided;
}

/* One look, under the lock. */
static zero_status look(zero_comm *comm, const zero_awaited *awaited, bool *ended)
{
    int request_ended = 0;
    ZERO_TRY(zero_flight_poll(comm, NULL));
    if (awaited->request)
        ZERO_TRY(
            zero_mpi_check(MPI_Test(awaited->request, &request_ended, MPI_STATUS_IGNORE),
                           "a message to all ranks"));
    *ended = (awaited->done && *awaited->done) || request_ended ||
             (awaited->op && !awaited->op->is_active) ||
             (awaited->idle && is_idle(awaited->idle));
    return *ended ? ZERO_OK : zero_watch_turn(comm);
}

/* The processor time that the other threads of this process have used. */
typedef struct {
    double when, used; /* at the last look */
    bool compute;      /* between the last two: more than next to nothing */
} others;

static double processor_seconds(clockid_t clock)
{
    struct timespec used = {0};
    clock_gettime(clock, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

/* True at first. */
static bool others_compute(others *o)
{
    double now = zero_clock_seconds();
    if (now - o->when < OTHERS_EVERY) return o->compute;
    double used = processor_seconds(CLOCK_PROCESS_CPUTIME_ID) -
                  processor_seconds(CLOCK_THREAD_CPUTIME_ID);
    bool compute = o->when == 0.0 || used - o->used > OTHERS_LEAST * (now - o->when);
    *o = (others){now, used, compute};
    return compute;
}

/* Between threads of one process it sleeps if nothing could move. */
zero_status zero_wait_until(zero_comm *group, zero_watch_state state,
                            const zero_operation *what, const zero_awaited *awaited,
                            bool *ended)
{
    zero_comm *comm = zero_family_whole(group);
    zero_status st = ZERO_OK;
    zero_sigterm sigterm = {.last_look = 0.0};
    others beside = {.when = 0.0};
    *ended = false;
    note(comm, state, what);
    zero_thread_waits(comm, 1);
    for (int turns = 0; !*ended; turns += turns < SPINS) {
        int64_t moves = comm->local ? zero_local_moves(comm) : 0;
        int64_t advanced = comm->advanced;
        if (zero_thread_try_lock(comm)) {
            st = look(comm, awaited, ended);
            if (turns == SPINS && !*ended)
                zero_sigterm_turn(&sigterm, comm->advanced, comm->patience);
            if (st != ZERO_OK && comm->works) zero_thread_fail(comm, st);
            zero_thread_unlock(comm);
        }
        if (st != ZERO_OK || *ended) break;
        if (awaited->until > 0.0 && zero_clock_seconds() >= awaited->until) break;
        if (comm->local && comm->advanced == advanced)
            st = zero_local_rest(comm, moves);
        else if (!comm->local) {
            /* Between looks: spins, then yields the processor; beside others that keep it,
             * sleeps. A nap takes longer than most messages, so a wait beside threads that
             * compute naps only while they do: once they wait, too, they wait for this
             * one. */
            static const struct timespec nap = {.tv_nsec = 50000};
            const bool is_soon = turns <= NAPS_AFTER;
            if (awaited->naps && !is_soon && others_compute(&beside))
                nanosleep(&nap, NULL);
            else if (!is_soon && zero_crowd_is_there(&comm->crowd))
                zero_crowd_sleep();
            else if (turns >= SPINS)
                zero_crowd_yield(&comm->crowd);
        }
        if (st != ZERO_OK) break;
    }
    zero_thread_waits(comm, -1);
    if (*ended) note(comm, ZERO_WATCH_COMPUTING, what);
    return st;
}

static zero_status wait_for(zero_comm *comm, zero_watch_state state,
                            const zero_operation *what, const zero_awaited *awaited)
{
    bool ended;
    return zero_wait_until(comm, state, what, awaited, &ended);
}

zero_status zero_wait_collective(zero_collective *op)
{
    zero_operation what = zero_flight_operation(op);
    const zero_awaited awaited = {.op = op};
    return wait_for(op->comm, ZERO_WATCH_WAITING, &what, &awaited);
}

zero_status zero_wait_request(zero_comm *comm, zero_watch_state state,
                              const zero_operation *what, MPI_Request *request)
{
    const zero_awaited awaited = {.request = request};
    return wait_for(comm, state, what, &awaited);
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
