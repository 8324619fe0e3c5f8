#include "comm/collective.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stream.h"
#include "comm/check.h"
#include "comm/native.h"
#include "comm/progress.h"
#include "comm/signal.h"
#include "comm/wait.h"
#include "comm/watch.h"

/* After so much arithmetic, 0.1 ms or so, the caller shall have its turn. */
#define BYTES_PER_POLL ((size_t)1 << 20)

/* Results from this size on leave the caches anyway: they are stored past them. */
#define STREAM_BYTES ((size_t)1 << 20)

/* ---- set-up ---- */

static zero_status check_window(const zero_collective *op)
{
    if (op->comm->signals ||
        !zero_algorithm_needs_window(op->spec.algorithm, &op->comm->layout))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s works in a window, and this group has none: make it first",
                     zero_algorithm_name(op->spec.algorithm));
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
    zero_collective new = {.comm = comm, .spec = *spec, .add = MPI_OP_NULL};
    ZERO_TRY(check_window(&new));
    ZERO_TRY(zero_steps_init(&new.steps, spec, &comm->layout, comm->rank));
    zero_status st = allocate_terms(&new);
    if (st == ZERO_OK) st = zero_native_init(&new);
    if (st != ZERO_OK) {
        zero_collective_destroy(&new);
        return st;
    }
    *op = new;
    op->steps.spec = &op->spec;
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
    zero_native_destroy(op);
    zero_steps_destroy(&op->steps);
    free(op->terms);
    *op = (zero_collective){0};
}

/* ---- where things are ---- */

static size_t element_size(const zero_collective *op, zero_place place)
{
    return zero_type_size(place == ZERO_OUT ? op->spec.result : op->spec.type);
}

static char *address(const zero_collective *op, zero_spot spot)
{
    int64_t size = (int64_t)element_size(op, spot.place);
    int64_t away = spot.rank - op->comm->rank; /* neighbours are next to each other */
    if (spot.place == ZERO_STAGING) return (char *)op->staging + spot.at;
    if (spot.place == ZERO_IN)
        return (char *)op->in + spot.at * size + away * (int64_t)op->spec.in_apart;
    if (op->spec.one_out) away = 0;
    return (char *)op->out + spot.at * size + away * (int64_t)op->spec.out_apart;
}

/* ---- what steps wait for ---- */

/* Takes note of the requests that have ended. */
static zero_status reap(zero_collective *op)
{
    if (op->in_flight == 0) return ZERO_OK;
    int n = 0, which[ZERO_COLLECTIVE_REQUESTS];
    MPI_Status status[ZERO_COLLECTIVE_REQUESTS];
    int code = MPI_Testsome(ZERO_COLLECTIVE_REQUESTS, op->requests, &n, which, status);
    if (code == MPI_ERR_IN_STATUS)
        for (int i = 0; i < n; i++)
            if (status[i].MPI_ERROR != MPI_SUCCESS) code = status[i].MPI_ERROR;
    ZERO_TRY(zero_comm_check(code, "a message of a collective"));
    op->in_flight -= n;
    return ZERO_OK;
}

/* Whether the messages of one direction that the first `until` steps posted have ended. */
static bool have_ended(const zero_collective *op, bool sends, int64_t until)
{
    for (int i = 0; until > 0 && i < ZERO_COLLECTIVE_REQUESTS; i++) {
        if (op->requests[i] == MPI_REQUEST_NULL || op->step_of[i] >= until) continue;
        if ((op->steps.list[op->step_of[i]].kind == ZERO_STEP_SEND) == sends) return false;
    }
    return true;
}

static bool has_reached(const zero_collective *op, int peer, int64_t phase)
{
    const zero_layout *layout = op->steps.layout;
    if (peer != ZERO_ALL_NEIGHBOURS)
        return zero_signal_reached(op->comm, peer, op->sequence, phase);
    int node = layout->node_of[op->comm->rank];
    for (int r = layout->first[node]; r < layout->first[node + 1]; r++)
        if (r != op->comm->rank && !zero_signal_reached(op->comm, r, op->sequence, phase))
            return false;
    return true;
}

static bool has_native_left(const zero_collective *op)
{
    bool native = op->spec.algorithm == ZERO_ALGORITHM_MPI;
    for (int64_t i = op->next_step; native && i < op->steps.n; i++)
        if (op->steps.list[i].kind == ZERO_STEP_NATIVE) return true;
    return false;
}

/* MPI matches its collectives by their order, so ranks post them in one: that of begin. */
static bool is_first_native(const zero_collective *op)
{
    for (const zero_collective *o = op->comm->active; o != op; o = o->next_active)
        if (has_native_left(o)) return false;
    return true;
}

static bool is_ready(const zero_collective *op, const zero_step *step)
{
    if (!have_ended(op, false, step->received) || !have_ended(op, true, step->sent))
        return false;
    switch (step->kind) {
    case ZERO_STEP_NATIVE:
        return op->in_flight < ZERO_COLLECTIVE_REQUESTS && is_first_native(op);
    case ZERO_STEP_SEND:
    case ZERO_STEP_RECEIVE: return op->in_flight < ZERO_COLLECTIVE_REQUESTS;
    case ZERO_STEP_AWAIT: return has_reached(op, step->peer, step->phase);
    default: return true;
    }
}

/* ---- what steps do ---- */

static MPI_Request *take_request(zero_collective *op)
{
    int i = 0;
    while (op->requests[i] != MPI_REQUEST_NULL) i++;
    op->step_of[i] = op->next_step;
    op->in_flight++;
    return &op->requests[i];
}

static zero_status post(zero_collective *op, const zero_step *step)
{
    MPI_Datatype type = zero_native_type(step->type);
    int len = (int)step->len, tag = (int)(op->sequence % op->comm->tag_limit);
    switch (step->kind) {
    case ZERO_STEP_SEND:
        return zero_comm_check(MPI_Isend(address(op, step->from), len, type, step->peer,
                                         tag, op->comm->mpi, take_request(op)),
                               "MPI_Isend");
    case ZERO_STEP_RECEIVE:
        return zero_comm_check(MPI_Irecv(address(op, step->to), len, type, step->peer, tag,
                                         op->comm->mpi, take_request(op)),
                               "MPI_Irecv");
    default:
        return zero_native_post(op, step, address(op, step->from), address(op, step->to),
                                take_request(op));
    }
}

static const void *term_data(const zero_collective *op, const zero_step *step,
                             const zero_term *term)
{
    if (term->staged >= 0) return (char *)op->staging + step->staged + term->staged;
    return address(op, (zero_spot){ZERO_IN, term->first, step->from.at});
}

/* A sum of one term is a copy; in place there is nothing to do. Returns the bytes read. */
static size_t add(zero_collective *op, const zero_step *step)
{
    const zero_sum *sum = &op->steps.sums[step->sum];
    char *to = address(op, step->to);
    for (int64_t t = 0; t < sum->n; t++)
        op->terms[t] = (zero_tree_term){.data = term_data(op, step, &sum->terms[t]),
                                        .type = sum->terms[t].type,
                                        .first = sum->terms[t].first,
                                        .count = sum->terms[t].count};
    if (sum->n == 1 && op->terms[0].data == to) return 0;
    bool stream = step->to.place == ZERO_OUT &&
                  (size_t)op->spec.count * zero_type_size(step->type) >= STREAM_BYTES;
    zero_tree_sum((int)sum->n, op->terms, step->len, step->type, to, stream);
    return (size_t)(sum->n * step->len) * zero_type_size(op->spec.type);
}

/* In place there is nothing to copy. Returns the bytes read. */
static size_t copy(zero_collective *op, const zero_step *step)
{
    const char *from = address(op, step->from);
    char *to = address(op, step->to);
    size_t bytes = (size_t)step->len * zero_type_size(step->type);
    if (to == from) return 0;
    if ((size_t)op->spec.count * zero_type_size(step->type) >= STREAM_BYTES)
        zero_stream_copy(to, from, bytes);
    else
        memcpy(to, from, bytes);
    return bytes;
}

/* *computed: the bytes that have been read so far, in this poll. */
static zero_status run(zero_collective *op, const zero_step *step, size_t *computed)
{
    zero_steps_count(&op->steps, step, &op->comm->traffic[op->spec.kind]);
    switch (step->kind) {
    case ZERO_STEP_SEND:
    case ZERO_STEP_RECEIVE:
    case ZERO_STEP_NATIVE: return post(op, step);
    case ZERO_STEP_ADD: *computed += add(op, step); break;
    case ZERO_STEP_COPY: *computed += copy(op, step); break;
    case ZERO_STEP_SIGNAL:
        if (op->comm->signals) zero_signal_set(op->comm, op->sequence, step->phase);
        break;
    case ZERO_STEP_AWAIT: break;
    }
    return ZERO_OK;
}

/* ---- begin, progress, wait ---- */

static zero_status check_begin(const zero_collective *op)
{
    const zero_collective *oldest = op->comm->active;
    assert(!op->is_active);
    assert(op->staging || zero_collective_staging(&op->spec, op->steps.layout) == 0);
    if (!oldest || op->sequence - oldest->sequence < ZERO_SIGNALS) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "collective %" PRId64 " begins while %" PRId64
                     " is in flight: expected fewer than %d between them",
                     op->sequence, oldest->sequence, ZERO_SIGNALS);
}

static void finish(zero_collective *op)
{
    op->ended = zero_clock_seconds();
    op->comm->duration[op->spec.kind].total += op->ended - op->begun;
    remove_active(op);
}

static zero_status run_steps(zero_collective *op, size_t *computed)
{
    while (*computed < BYTES_PER_POLL && op->next_step < op->steps.n) {
        const zero_step *step = &op->steps.list[op->next_step];
        if (!is_ready(op, step)) break;
        ZERO_TRY(run(op, step, computed));
        op->next_step++;
    }
    return ZERO_OK;
}

/* Once more after each success: MPI seldom ends more than one message per look. */
static zero_status progress(zero_collective *op)
{
    size_t computed = 0;
    bool advanced = true;
    while (op->is_active && advanced && computed < BYTES_PER_POLL) {
        int64_t next_step = op->next_step;
        int in_flight = op->in_flight;
        ZERO_TRY(reap(op));
        ZERO_TRY(run_steps(op, &computed));
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
    op->steps.spec = &op->spec; /* the struct may have been copied since init */
    op->begun = zero_clock_seconds();
    op->next_step = 0;
    op->in_flight = 0;
    for (int i = 0; i < ZERO_COLLECTIVE_REQUESTS; i++) op->requests[i] = MPI_REQUEST_NULL;
    if (!comm->active) {
        comm->last_poll = op->begun;
        zero_progress_wake(comm);
    }
    append_active(op);
    zero_operation what = zero_operation_collective(&op->spec, op->sequence);
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
    zero_operation what = zero_operation_collective(&op->spec, op->sequence);
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
    op->comm->duration[op->spec.kind].exposed += op->ended - start;
    return ZERO_OK;
}
