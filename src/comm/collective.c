#include "comm/collective.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/check.h"
#include "comm/mpi_call.h"
#include "comm/progress.h"
#include "comm/signal.h"
#include "comm/steps_run.h"
#include "comm/wait.h"
#include "comm/watch.h"

/* ---- set-up ---- */

static zero_status check_window(const zero_comm *comm, zero_algorithm algorithm)
{
    if (comm->signals || !zero_algorithm_needs_window(algorithm, &comm->layout))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s works in a window, and this group has none: make it first",
                     zero_algorithm_name(algorithm));
}

static zero_status allocate_terms(zero_collective *op)
{
    int64_t most = 1;
    for (int64_t i = 0; i < op->steps.n_sums; i++)
        if (op->steps.sums[i].n > most) most = op->steps.sums[i].n;
    op->terms = calloc((size_t)most, sizeof *op->terms);
    if (op->terms) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for sums of %" PRId64 " terms", most);
}

zero_status zero_collective_init(zero_collective *op, zero_comm *comm,
                                 const zero_collective_spec *spec)
{
    zero_collective new = {.comm = comm, .add = MPI_OP_NULL};
    ZERO_TRY(check_window(comm, spec->algorithm));
    ZERO_TRY(zero_steps_init(&new.steps, spec, &comm->layout, comm->rank));
    zero_status st = allocate_terms(&new);
    if (st == ZERO_OK) st = zero_mpi_call_init(&new);
    if (st != ZERO_OK) {
        zero_collective_destroy(&new);
        return st;
    }
    *op = new;
    return ZERO_OK;
}

static void append_active(zero_collective *op)
{
    zero_collective **end = &op->comm->active;
    while (*end) end = &(*end)->next_active;
    *end = op;
    op->next_active = NULL;
    op->is_active = true;
}

static void remove_active(zero_collective *op)
{
    zero_collective **link = &op->comm->active;
    while (*link != op) link = &(*link)->next_active;
    *link = op->next_active;
    op->is_active = false;
}

void zero_collective_destroy(zero_collective *op)
{
    if (op->comm) zero_progress_lock(op->comm);
    if (op->is_active) remove_active(op);
    if (op->comm) zero_progress_unlock(op->comm);
    zero_mpi_call_destroy(op);
    zero_steps_destroy(&op->steps);
    free(op->terms);
    *op = (zero_collective){0};
}

/* ---- begin, progress, wait ---- */

static zero_status check_begin(const zero_collective *op)
{
    const zero_collective *oldest = op->comm->active;
    assert(!op->is_active);
    assert(op->staging || zero_collective_staging(&op->steps.spec, op->steps.layout) == 0);
    if (!oldest || op->sequence - oldest->sequence < ZERO_SIGNALS) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "collective %" PRId64 " begins while %" PRId64
                     " is in flight: expected fewer than %d between them",
                     op->sequence, oldest->sequence, ZERO_SIGNALS);
}

static void finish(zero_collective *op)
{
    op->ended = zero_clock_seconds();
    op->comm->duration[op->steps.spec.kind].total += op->ended - op->begun;
    remove_active(op);
}

/* Once more after each success: MPI seldom ends more than one message per look. */
static zero_status progress(zero_collective *op)
{
    size_t computed = 0;
    bool advanced = true;
    while (op->is_active && advanced && computed < ZERO_STEPS_BYTES_PER_POLL) {
        int64_t next_step = op->next_step;
        int in_flight = op->in_flight;
        ZERO_TRY(zero_steps_reap(op));
        ZERO_TRY(zero_steps_run(op, &computed));
        advanced = op->next_step != next_step || op->in_flight != in_flight;
        if (advanced) op->comm->advanced++;
        if (op->next_step == op->steps.n && op->in_flight == 0) finish(op);
    }
    return ZERO_OK;
}

static zero_status begin(zero_collective *op)
{
    zero_comm *comm = op->comm;
    ZERO_TRY(check_begin(op));
    comm->sequence++;
    op->begun = zero_clock_seconds();
    op->next_step = 0;
    op->in_flight = 0;
    for (int i = 0; i < ZERO_COLLECTIVE_REQUESTS; i++) op->requests[i] = MPI_REQUEST_NULL;
    if (!comm->active) {
        comm->last_poll = op->begun;
        zero_progress_wake(comm);
    }
    append_active(op);
    zero_operation what = zero_operation_collective(&op->steps.spec, op->sequence);
    if (comm->watch) zero_watch_note(comm, ZERO_WATCH_COMPUTING, &what);
    return progress(op);
}

zero_status zero_collective_begin(zero_collective *op, const void *in, void *out,
                                  void *staging)
{
    op->in = in;
    op->out = out;
    op->staging = staging;
    op->sequence = op->comm->sequence;
    zero_operation what = zero_operation_collective(&op->steps.spec, op->sequence);
    ZERO_TRY(zero_check_compare(op->comm, &what));
    zero_progress_lock(op->comm);
    zero_status st = begin(op);
    zero_progress_unlock(op->comm);
    return st;
}

/* How long they were left alone. */
static void note_gap(zero_comm *comm)
{
    double now = zero_clock_seconds(), gap = now - comm->last_poll;
    if (gap > comm->largest_gap) comm->largest_gap = gap;
    comm->last_poll = now;
}

/* One collective, or with NULL all that are in flight. */
static zero_status poll(zero_comm *comm, zero_collective *only)
{
    ZERO_TRY(zero_progress_failure(comm));
    if (comm->active) note_gap(comm);
    if (only) ZERO_TRY(progress(only));
    for (zero_collective *op = only ? NULL : comm->active, *next; op; op = next) {
        next = op->next_active; /* one that has ended leaves the list */
        ZERO_TRY(progress(op));
    }
    return comm->watch ? zero_watch_look(comm) : ZERO_OK;
}

zero_status zero_collective_progress(zero_collective *op, bool *done)
{
    zero_progress_lock(op->comm);
    zero_status st = poll(op->comm, op);
    if (st == ZERO_OK) *done = !op->is_active;
    zero_progress_unlock(op->comm);
    return st;
}

zero_status zero_collective_poll(zero_comm *comm)
{
    zero_progress_lock(comm);
    zero_status st = poll(comm, NULL);
    zero_progress_unlock(comm);
    return st;
}

/* Polls that move nothing are counted as well: MPI may copy a part of a message in them. The
 * first of the two readings of the clock is that of note_gap(). */
zero_status zero_collective_poll_timed(zero_comm *comm, double *seconds)
{
    zero_progress_lock(comm);
    bool is_active = comm->active != NULL;
    zero_status st = poll(comm, NULL);
    if (is_active) *seconds += zero_clock_seconds() - comm->last_poll;
    zero_progress_unlock(comm);
    return st;
}

static bool is_over(const zero_collective *op)
{
    zero_progress_lock(op->comm);
    bool over = !op->is_active;
    zero_progress_unlock(op->comm);
    return over;
}

zero_status zero_collective_wait(zero_collective *op)
{
    double start = zero_clock_seconds();
    if (is_over(op)) return ZERO_OK;
    ZERO_TRY(zero_wait_collective(op));
    op->comm->duration[op->steps.spec.kind].exposed += op->ended - start;
    return ZERO_OK;
}
