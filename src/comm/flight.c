#include "comm/flight.h"

#include "base/clock.h"
#include "comm/device.h"
#include "comm/family.h"
#include "comm/mpi_error.h"
#include "comm/spans.h"
#include "comm/steps_run.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "comm/works.h"

/* ---- the list ---- */

void zero_flight_leave(zero_collective *op)
{
    zero_collective **at = &op->comm->active;
    while (*at != op) at = &(*at)->next_active;
    *at = op->next_active;
    op->is_active = false;
}

/* ---- moving ---- */

/* Messages and copies in flight. */
static int64_t in_flight(const zero_collective *op)
{
    return op->in_flight + zero_device_copy_left(op);
}

/* Looks again after each success: MPI seldom ends more than one message per look. */
static zero_status advance(zero_collective *op)
{
    size_t computed = 0;
    bool advanced = true;
    while (op->is_active && advanced && computed < ZERO_STEPS_BYTES_PER_POLL) {
        int64_t next_step = op->next_step, before = in_flight(op);
        ZERO_TRY(zero_steps_reap(op));
        ZERO_TRY(zero_steps_run(op, &computed));
        advanced = op->next_step != next_step || in_flight(op) != before;
        if (advanced) zero_family_whole(op->comm)->advanced++;
        if (op->next_step == op->steps.n && in_flight(op) == 0) {
            op->ended = zero_clock_seconds();
            op->comm->duration[op->steps.spec.kind].total += op->ended - op->begun;
            op->duration.total += op->ended - op->begun;
            zero_comm_spans_end(op);
            zero_flight_leave(op);
            if (op->done) *op->done = true;
        }
    }
    return ZERO_OK;
}

zero_operation zero_flight_operation(const zero_collective *op)
{
    zero_operation what = zero_operation_collective(&op->steps.spec, op->sequence);
    what.member = op->comm->member;
    zero_operation_set_group(&what, op->comm->name);
    if (op->steps.spec.kind == ZERO_ALL_REDUCE)
        what.count = op->comm->size * what.count + op->steps.spec.tail;
    return what;
}

zero_status zero_flight_begin(zero_collective *op)
{
    zero_comm *whole = zero_family_whole(op->comm);
    assert(!op->is_active);
    const zero_collective *oldest = op->comm->active;
    /* Messages between two ranks have numbers of their own, and no counters. */
    const bool is_of_all = op->steps.spec.only == 0;
    ZERO_FAIL_IF(is_of_all && oldest && op->sequence - oldest->sequence >= ZERO_SIGNALS,
                 ZERO_ERR_UNSUPPORTED,
                 "collective %" PRId64 " begins while %" PRId64
                 " is in flight: expected fewer than %d between them",
                 op->sequence, oldest->sequence, ZERO_SIGNALS);
    if (op->steps.spec.direct && op->copier->window)
        zero_device_window_place(op->copier->window, op->sequence, op->in, op->out);
    if (is_of_all && op->sequence == op->comm->sequence) op->comm->sequence++;
    op->begun = zero_clock_seconds();
    zero_comm_spans_begin(op);
    op->next_step = 0;
    op->in_flight = op->n_slots = 0;
    op->fetches = op->stores = (zero_device_tickets){0};
    for (int i = 0; i < ZERO_COLLECTIVE_REQUESTS; i++) op->requests[i] = MPI_REQUEST_NULL;
    if (!zero_family_is_active(whole)) whole->last_poll = op->begun;
    zero_thread_wake(whole);
    zero_collective **end = &op->comm->active;
    while (*end) end = &(*end)->next_active;
    *end = op;
    op->next_active = NULL;
    op->is_active = true;
    zero_operation what = zero_flight_operation(op);
    zero_watch_note(whole, ZERO_WATCH_COMPUTING, &what);
    return advance(op);
}

/* With `only`, moves it and the earlier ones for whose sends it waits: otherwise a caller
 * that polls for this one alone would never see it end. */
static zero_status advance_group(const zero_comm *comm, zero_collective *only)
{
    for (zero_collective *op = comm->active, *next; op; op = next) {
        next = op->next_active; /* one that has ended leaves the list */
        if (!only || op == only ||
            (only->is_active && only->steps.spec.in_turn && op->steps.spec.in_turn))
            ZERO_TRY(advance(op));
        if (op == only) break;
    }
    return ZERO_OK;
}

static zero_status advance_works(zero_comm *comm)
{
    if (comm->undecided) ZERO_TRY(zero_works_decide(comm));
    for (zero_requests **at = &comm->requests; *at;) {
        zero_requests *r = *at;
        int ended = 0;
        ZERO_TRY(zero_mpi_check(MPI_Testall(r->n, r->list, &ended, MPI_STATUSES_IGNORE),
                                "a message"));
        if (ended) {
            *at = r->next;
            *r->done = true;
            zero_family_whole(comm)->advanced++;
        } else {
            at = &r->next;
        }
    }
    return ZERO_OK;
}

zero_status zero_flight_poll(zero_comm *comm, zero_collective *only)
{
    zero_comm *whole = zero_family_whole(comm);
    ZERO_TRY(zero_thread_failure(whole));
    if (zero_family_is_active(whole)) {
        double now = zero_clock_seconds(), gap = now - whole->last_poll;
        if (gap > whole->largest_gap) whole->largest_gap = gap;
        whole->last_poll = now;
    }
    /* Other ranks may wait for a collective of any of the groups. */
    ZERO_TRY(advance_group(only ? only->comm : whole, only));
    for (int i = 0; !only && i < whole->n_parts; i++)
        ZERO_TRY(advance_group(&whole->parts[i], NULL));
    if (!only) ZERO_TRY(advance_works(whole));
    for (zero_comm *g = whole->named; g && !only; g = g->next_named) {
        ZERO_TRY(advance_group(g, NULL));
        ZERO_TRY(advance_works(g));
    }
    return zero_watch_look(whole);
}
