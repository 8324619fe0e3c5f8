#include "comm/steps_run.h"

#include "base/stream.h"
#include "comm/device.h"
#include "comm/local.h"
#include "comm/mpi_call.h"
#include "comm/mpi_error.h"
#include "lists/algorithm.h"

/* Results of this size or more leave the caches anyway, so they are stored past them. */
#define STREAM_BYTES ((size_t)1 << 20)

/* ---- addresses ---- */

static char *address(const zero_collective *op, zero_spot spot)
{
    int64_t size = (int64_t)zero_element_size(spot.place == ZERO_OUT ? op->steps.spec.result
                                                                     : op->steps.spec.type);
    int64_t away = spot.rank - op->comm->rank; /* parts of neighbours adjoin */
    if (op->steps.spec.direct && away != 0)    /* in the memory of a neighbour's device */
        return zero_device_window_find(op->copier->window, spot.rank, op->sequence,
                                       spot.place == ZERO_IN) +
               spot.at * size;
    if (op->given && away != 0) return (char *)op->given[spot.rank] + spot.at * size;
    if (spot.place == ZERO_STAGING) return (char *)op->staging + spot.at;
    if (spot.place == ZERO_IN)
        return (char *)op->in + spot.at * size + away * (int64_t)op->in_apart;
    if (op->steps.spec.one_out) away = 0;
    return (char *)op->out + spot.at * size + away * (int64_t)op->out_apart;
}

/* ---- what steps wait for ---- */

static bool is_free(const zero_collective *op, int slot)
{
    if (op->messages) return !op->messages[slot].is_used;
    return op->requests[slot] == MPI_REQUEST_NULL;
}

zero_status zero_steps_reap(zero_collective *op)
{
    if (op->copier) ZERO_TRY(zero_device_copy_reap(op));
    if (op->in_flight == 0) return ZERO_OK;
    if (!op->messages) {
        int n = 0, which[ZERO_COLLECTIVE_REQUESTS];
        MPI_Status status[ZERO_COLLECTIVE_REQUESTS];
        int code = MPI_Testsome(op->n_slots, op->requests, &n, which, status);
        if (code == MPI_ERR_IN_STATUS)
            for (int i = 0; i < n; i++)
                if (status[i].MPI_ERROR != MPI_SUCCESS) code = status[i].MPI_ERROR;
        ZERO_TRY(zero_mpi_check(code, "a message of a collective"));
        op->in_flight -= n;
        return ZERO_OK;
    }
    zero_local_reap(op);
    return ZERO_OK;
}

/* True if the sends, or the receives, that the first `until` steps posted have ended. */
static bool have_ended(const zero_collective *op, bool sends, int64_t until)
{
    for (int i = 0; until > 0 && i < op->n_slots; i++) {
        if (is_free(op, i) || op->step_of[i] >= until) continue;
        if ((op->steps.list[op->step_of[i]].kind == ZERO_STEP_SEND) == sends) return false;
    }
    return true;
}

/* MPI matches its collectives by their order, so all ranks post them in the order of
 * begin. */
static bool may_call_mpi(const zero_collective *op)
{
    for (const zero_collective *o = op->comm->active; o != op; o = o->next_active)
        for (int64_t i = o->next_step; i < o->steps.n; i++)
            if (o->steps.list[i].kind == ZERO_STEP_MPI) return false;
    return true;
}

/* Ranks begin collectives in the same order, so the oldest in flight anywhere never waits
 * here. */
static bool may_send(const zero_collective *op)
{
    if (!op->steps.spec.in_turn) return true;
    for (const zero_collective *o = op->comm->active; o != op; o = o->next_active)
        if (o->steps.spec.in_turn && o->next_step < o->until_sent) return false;
    return true;
}

static bool is_ready(const zero_collective *op, const zero_collective_step *step)
{
    if (!have_ended(op, false, step->received) || !have_ended(op, true, step->sent))
        return false;
    if (!zero_device_copy_ended(&op->fetches, step->fetched) ||
        !zero_device_copy_ended(&op->stores, step->stored))
        return false;
    switch (step->kind) {
    case ZERO_STEP_MPI: return op->in_flight < ZERO_COLLECTIVE_REQUESTS && may_call_mpi(op);
    case ZERO_STEP_SEND: return op->in_flight < ZERO_COLLECTIVE_REQUESTS && may_send(op);
    case ZERO_STEP_RECEIVE: return op->in_flight < ZERO_COLLECTIVE_REQUESTS;
    case ZERO_STEP_AWAIT: {
        const zero_layout *layout = op->steps.layout;
        if (step->peer != ZERO_ALL_NEIGHBOURS)
            return zero_signal_reached(op->comm, step->peer, op->sequence, step->phase);
        int node = layout->node_of[op->comm->rank];
        for (int r = layout->first[node]; r < layout->first[node + 1]; r++)
            if (r != op->comm->rank &&
                !zero_signal_reached(op->comm, r, op->sequence, step->phase))
                return false;
        return true;
    }
    case ZERO_STEP_FETCH: return zero_device_copy_fits(&op->fetches);
    case ZERO_STEP_STORE:
    case ZERO_STEP_MARK: return zero_device_copy_fits(&op->stores);
    case ZERO_STEP_ADD:
    case ZERO_STEP_COPY:
        return !zero_steps_is_near(&op->steps, step) || zero_device_copy_fits(&op->stores);
    case ZERO_STEP_SIGNAL: break;
    }
    return true;
}

/* ---- what steps do ---- */

static int take_slot(zero_collective *op)
{
    int i = 0;
    while (!is_free(op, i)) i++;
    op->step_of[i] = op->next_step;
    op->in_flight++;
    if (i >= op->n_slots) op->n_slots = i + 1;
    return i;
}

static const zero_sum *find_terms(zero_collective *op, const zero_collective_step *step)
{
    const zero_sum *sum = &op->steps.sums[step->sum];
    for (int64_t t = 0; t < sum->n; t++) {
        const zero_term *term = &sum->terms[t];
        zero_spot of_rank = {ZERO_IN, term->first, step->from.at};
        zero_spot staged = {ZERO_STAGING, op->comm->rank, step->staged + term->staged};
        op->terms[t] = (zero_tree_term){address(op, term->staged < 0 ? of_rank : staged),
                                        term->type, term->first, term->count};
    }
    return sum;
}

/* A sum of one term is a copy, and in place nothing at all. Returns the bytes read. */
static size_t add(zero_collective *op, const zero_collective_step *step)
{
    const zero_sum *sum = find_terms(op, step);
    char *to = address(op, step->to);
    if (sum->n == 1 && op->terms[0].data == to) return 0;
    bool stream =
        step->to.place == ZERO_OUT &&
        (size_t)op->steps.spec.count * zero_element_size(step->type) >= STREAM_BYTES;
    const zero_collective_spec *spec = &op->steps.spec;
    const int size = op->comm->size;
    if (!zero_reduction_is_tree(spec->reduction, (zero_number)spec->type))
        zero_reduce_terms(spec->reduction, (zero_number)spec->type, (int)sum->n, op->terms,
                          step->len, size, to);
    else if (spec->reduction == ZERO_MEAN && step->to.place == ZERO_OUT)
        zero_tree_mean((int)sum->n, op->terms, step->len, size, step->type, to);
    else /* partial sums of a mean as well */
        zero_tree_sum((int)sum->n, op->terms, step->len, step->type, to, stream);
    return (size_t)(sum->n * step->len) * zero_element_size(op->steps.spec.type);
}

/* Returns the bytes read: none in place. */
static size_t copy(zero_collective *op, const zero_collective_step *step)
{
    const char *from = address(op, step->from);
    char *to = address(op, step->to);
    size_t bytes = (size_t)step->len * zero_element_size(step->type);
    if (to == from) return 0;
    if ((size_t)op->steps.spec.count * zero_element_size(step->type) >= STREAM_BYTES)
        zero_stream_copy(to, from, bytes);
    else
        memcpy(to, from, bytes);
    return bytes;
}

/* Begins the step on the device, unless a copy has nothing to move. */
static zero_status run_there(zero_collective *op, const zero_collective_step *step)
{
    size_t size = zero_element_size(step->type);
    char *to = NULL;
    const char *from = NULL;
    if (step->kind == ZERO_STEP_STORE)
        to = (char *)op->device_out + (size_t)step->to.at * size;
    else if (step->kind != ZERO_STEP_MARK)
        to = address(op, step->to);
    if (step->kind == ZERO_STEP_FETCH)
        from = (const char *)op->device_in + (size_t)step->from.at * size;
    else if (step->kind == ZERO_STEP_ADD)
        find_terms(op, step);
    else if (step->kind != ZERO_STEP_MARK)
        from = address(op, step->from);
    if (step->kind == ZERO_STEP_COPY && to == from) return ZERO_OK;
    return zero_device_begin(op, step, to, from);
}

static zero_status run(zero_collective *op, const zero_collective_step *step,
                       size_t *computed)
{
    zero_steps_count(&op->steps, step, &op->comm->traffic[op->steps.spec.kind]);
    zero_steps_count(&op->steps, step, &op->traffic);
    zero_steps_count_peers(&op->steps, step, &op->comm->peers);
    bool is_near = zero_steps_is_near(&op->steps, step);
    switch (step->kind) {
    case ZERO_STEP_SEND:
    case ZERO_STEP_RECEIVE: {
        /* In a reduce all ranks send to the root. Its MPI would have to keep what it has
         * not asked for, so these sends end when the root receives. */
        bool is_send = step->kind == ZERO_STEP_SEND;
        char *at = address(op, is_send ? step->from : step->to);
        MPI_Comm mpi = op->comm->mpi;
        MPI_Datatype type = zero_mpi_type(step->type);
        int slot = take_slot(op), len = (int)step->len, peer = step->peer;
        /* Messages of different operations do not meet, even if they have the same number:
         * then ranks wait, and nothing is cut off or taken for something else. The fewer
         * tags MPI has, the less of the hash is left. */
        const int64_t hashes = zero_max(op->comm->tag_limit / ZERO_SIGNALS, 1);
        int tag = (int)(op->sequence % ZERO_SIGNALS * hashes + (int64_t)op->hash % hashes);
        MPI_Request *request = &op->requests[slot];
        if (op->messages) {
            zero_local_post(op, slot, is_send, peer, at,
                            (size_t)step->len * zero_element_size(step->type));
            return ZERO_OK;
        }
        if (type == MPI_BYTE) len *= (int)zero_element_size(step->type);
        if (!is_send) return zero_mpi(MPI_Irecv(at, len, type, peer, tag, mpi, request));
        if (op->steps.spec.kind == ZERO_REDUCE)
            return zero_mpi(MPI_Issend(at, len, type, peer, tag, mpi, request));
        return zero_mpi(MPI_Isend(at, len, type, peer, tag, mpi, request));
    }
    case ZERO_STEP_MPI:
        return zero_mpi_call_post(op, step, address(op, step->from), address(op, step->to),
                                  &op->requests[take_slot(op)]);
    case ZERO_STEP_FETCH:
    case ZERO_STEP_STORE:
    case ZERO_STEP_MARK: return run_there(op, step);
    case ZERO_STEP_ADD:
        if (is_near) return run_there(op, step);
        *computed += add(op, step);
        break;
    case ZERO_STEP_COPY:
        if (is_near) return run_there(op, step);
        *computed += copy(op, step);
        break;
    case ZERO_STEP_SIGNAL:
        if (op->comm->signals) zero_signal_set(op->comm, op->sequence, step->phase);
        break;
    case ZERO_STEP_AWAIT: break;
    }
    return ZERO_OK;
}

zero_status zero_steps_run(zero_collective *op, size_t *computed)
{
    while (*computed < ZERO_STEPS_BYTES_PER_POLL && op->next_step < op->steps.n) {
        const zero_collective_step *step = &op->steps.list[op->next_step];
        if (!is_ready(op, step)) break;
        ZERO_TRY(run(op, step, computed));
        op->next_step++;
    }
    return ZERO_OK;
}
