#include "comm/collective.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/tree.h"
#include "comm/p2p.h"

#define MAX_CHUNK    ((int64_t)1 << 28) /* elements: messages of 1 GiB */
#define MAX_ELEMENTS ((int64_t)1 << 60)
#define SPINS        200 /* polls before a waiting rank lets others have the processor */

int64_t zero_collective_staging(const zero_collective_spec *spec, int size)
{
    return zero_p2p_staging(spec, size);
}

int64_t zero_collective_messages(const zero_collective_spec *spec, int size)
{
    return zero_p2p_count_messages(spec, size);
}

static zero_status check_spec(const zero_collective_spec *spec, int size)
{
    if (spec->count < 0 || spec->count > spec->stride || spec->stride > MAX_ELEMENTS / size)
        return zero_fail(
            ZERO_ERR_INVALID,
            "a collective over %d pieces of %" PRId64 " elements, %" PRId64
            " apart: expected 0 <= count <= stride, and no more than 2^60 in all",
            size, spec->count, spec->stride);
    if (spec->max_chunk < 0 || spec->max_chunk > MAX_CHUNK)
        return zero_fail(ZERO_ERR_INVALID,
                         "messages of up to %" PRId64 " elements: expected 0 to %" PRId64,
                         spec->max_chunk, MAX_CHUNK);
    return ZERO_OK;
}

zero_status zero_collective_init(zero_collective *op, zero_comm *comm,
                                 const zero_collective_spec *spec)
{
    ZERO_TRY(check_spec(spec, comm->size));
    zero_collective new = {.comm = comm,
                           .spec = *spec,
                           .chunk = zero_p2p_chunk(spec, comm->size),
                           .n_steps = zero_p2p_count_steps(spec, comm->size)};
    new.steps = calloc((size_t) new.n_steps + 1, sizeof *new.steps);
    new.terms = calloc((size_t)comm->size, sizeof *new.terms);
    if (!new.steps || !new.terms) {
        zero_collective_destroy(&new);
        return zero_fail(ZERO_ERR_NOMEM,
                         "no room for a collective of %" PRId64 " steps (%" PRId64
                         " elements in chunks of %" PRId64 "): choose larger chunks",
                         new.n_steps, spec->count, new.chunk);
    }
    zero_p2p_build(spec, comm->rank, comm->size, new.steps);
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
    if (op->is_active) remove_active(op);
    free(op->steps);
    free(op->terms);
    *op = (zero_collective){0};
}

static int take_tag(zero_comm *comm)
{
    int tag = comm->next_tag;
    comm->next_tag = tag + 1 < comm->tag_limit ? tag + 1 : 0;
    return tag;
}

zero_status zero_collective_begin(zero_collective *op, const float *in, float *out,
                                  float *staging)
{
    assert(!op->is_active);
    op->in = in;
    op->out = out;
    op->staging = staging;
    op->tag = take_tag(op->comm);
    op->next_step = 0;
    op->in_flight = 0;
    for (int i = 0; i < ZERO_COLLECTIVE_REQUESTS; i++) op->requests[i] = MPI_REQUEST_NULL;
    append_active(op);
    bool done;
    return zero_collective_progress(op, &done);
}

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

static bool is_received(const zero_collective *op, int64_t last)
{
    for (int i = 0; i < ZERO_COLLECTIVE_REQUESTS; i++)
        if (op->requests[i] != MPI_REQUEST_NULL && op->step_of[i] <= last &&
            op->steps[op->step_of[i]].kind == ZERO_STEP_RECEIVE)
            return false;
    return true;
}

static bool is_ready(const zero_collective *op, const zero_step *step)
{
    switch (step->kind) {
    case ZERO_STEP_SEND:
    case ZERO_STEP_RECEIVE: return op->in_flight < ZERO_COLLECTIVE_REQUESTS;
    case ZERO_STEP_ADD: return is_received(op, step->after);
    case ZERO_STEP_COPY: break;
    }
    return true;
}

static MPI_Request *take_request(zero_collective *op)
{
    int i = 0;
    while (op->requests[i] != MPI_REQUEST_NULL) i++;
    op->step_of[i] = op->next_step;
    op->in_flight++;
    return &op->requests[i];
}

static zero_traffic *traffic(zero_collective *op)
{
    bool reduces = op->spec.kind == ZERO_REDUCE_SCATTER;
    return &op->comm
                ->traffic[reduces ? ZERO_TRAFFIC_REDUCE_SCATTER : ZERO_TRAFFIC_ALL_GATHER];
}

static zero_status post_send(zero_collective *op, const zero_step *step)
{
    ZERO_TRY(
        zero_comm_check(MPI_Isend(op->in + step->from, (int)step->len, MPI_FLOAT,
                                  step->peer, op->tag, op->comm->mpi, take_request(op)),
                        "MPI_Isend"));
    traffic(op)->messages_sent++;
    traffic(op)->bytes_sent += step->len * (int64_t)sizeof(float);
    return ZERO_OK;
}

static zero_status post_receive(zero_collective *op, const zero_step *step)
{
    float *to = op->spec.kind == ZERO_REDUCE_SCATTER ? op->staging : op->out;
    ZERO_TRY(zero_comm_check(MPI_Irecv(to + step->to, (int)step->len, MPI_FLOAT, step->peer,
                                       op->tag, op->comm->mpi, take_request(op)),
                             "MPI_Irecv"));
    traffic(op)->messages_received++;
    traffic(op)->bytes_received += step->len * (int64_t)sizeof(float);
    return ZERO_OK;
}

/* Round i brought the term of rank - i; the sum goes by rank. */
static void add(zero_collective *op, const zero_step *step)
{
    int rank = op->comm->rank, size = op->comm->size;
    op->terms[rank] = op->in + step->from;
    for (int i = 1; i < size; i++)
        op->terms[(rank - i + size) % size] =
            op->staging + step->staged + (i - 1) * op->chunk;
    zero_tree_sum(size, op->terms, step->len, op->out + step->to);
}

/* In place there is nothing to copy. */
static void copy(zero_collective *op, const zero_step *step)
{
    const float *from = op->in + step->from;
    float *to = op->out + step->to;
    if (to != from) memcpy(to, from, (size_t)step->len * sizeof *to);
}

/* Whether the step costs time of its own, after which the caller shall have its turn. */
static bool computes(const zero_collective *op, const zero_step *step)
{
    return step->kind == ZERO_STEP_ADD ||
           (step->kind == ZERO_STEP_COPY && op->in + step->from != op->out + step->to);
}

static zero_status run(zero_collective *op, const zero_step *step)
{
    switch (step->kind) {
    case ZERO_STEP_SEND: return post_send(op, step);
    case ZERO_STEP_RECEIVE: return post_receive(op, step);
    case ZERO_STEP_ADD: add(op, step); break;
    case ZERO_STEP_COPY: copy(op, step); break;
    }
    return ZERO_OK;
}

zero_status zero_collective_progress(zero_collective *op, bool *done)
{
    if (op->is_active) {
        ZERO_TRY(reap(op));
        bool computed = false;
        while (!computed && op->next_step < op->n_steps) {
            const zero_step *step = &op->steps[op->next_step];
            if (!is_ready(op, step)) break;
            ZERO_TRY(run(op, step));
            op->next_step++;
            computed = computes(op, step);
        }
        if (op->next_step == op->n_steps && op->in_flight == 0) remove_active(op);
    }
    *done = !op->is_active;
    return ZERO_OK;
}

zero_status zero_collective_poll(zero_comm *comm)
{
    bool done;
    for (zero_collective *op = comm->active, *next; op; op = next) {
        next = op->next_active; /* one that has ended leaves the list */
        ZERO_TRY(zero_collective_progress(op, &done));
    }
    return ZERO_OK;
}

zero_status zero_collective_wait(zero_collective *op)
{
    for (int polls = 0; op->is_active;) {
        ZERO_TRY(zero_collective_poll(op->comm));
        if (polls < SPINS)
            polls++;
        else
            sched_yield();
    }
    return ZERO_OK;
}

static void print_step(const zero_step *step, FILE *file)
{
    switch (step->kind) {
    case ZERO_STEP_SEND:
        fprintf(file, "send    -> %-5d in[%" PRId64 "]", step->peer, step->from);
        break;
    case ZERO_STEP_RECEIVE:
        fprintf(file, "receive <- %-5d to[%" PRId64 "]", step->peer, step->to);
        break;
    case ZERO_STEP_ADD:
        fprintf(file,
                "add              in[%" PRId64 "] + staging[%" PRId64 "] -> out[%" PRId64
                "] after %" PRId64,
                step->from, step->staged, step->to, step->after);
        break;
    case ZERO_STEP_COPY:
        fprintf(file, "copy             in[%" PRId64 "] -> out[%" PRId64 "]", step->from,
                step->to);
        break;
    }
    fprintf(file, ", %" PRId64 " elements\n", step->len);
}

void zero_collective_print(const zero_collective *op, FILE *file)
{
    bool reduces = op->spec.kind == ZERO_REDUCE_SCATTER;
    fprintf(file,
            "%s, rank %d of %d: %" PRId64 " of every %" PRId64
            " elements, chunks of %" PRId64 ", staging %" PRId64 "\n",
            reduces ? "reduce-scatter" : "all-gather", op->comm->rank, op->comm->size,
            op->spec.count, op->spec.stride, op->chunk,
            zero_collective_staging(&op->spec, op->comm->size));
    for (int64_t i = 0; i < op->n_steps; i++) {
        fprintf(file, "%6" PRId64 "  ", i);
        print_step(&op->steps[i], file);
    }
}

static zero_status run_to_end(zero_collective *op, const float *in, float *out,
                              float *staging)
{
    ZERO_TRY(zero_collective_begin(op, in, out, staging));
    return zero_collective_wait(op);
}

zero_status zero_all_reduce(zero_comm *comm, int64_t count, int64_t stride, float *data,
                            float *staging)
{
    zero_collective_spec reduce = {ZERO_REDUCE_SCATTER, count, stride, 0};
    zero_collective_spec gather = {ZERO_ALL_GATHER, count, stride, 0};
    zero_collective scatter_op = {0}, gather_op = {0};
    float *own = data + comm->rank * stride;

    zero_status st = zero_collective_init(&scatter_op, comm, &reduce);
    if (st == ZERO_OK) st = zero_collective_init(&gather_op, comm, &gather);
    st = zero_agree(comm, st); /* memory may run out on one rank alone */
    if (st == ZERO_OK) st = run_to_end(&scatter_op, data, own, staging);
    if (st == ZERO_OK) st = run_to_end(&gather_op, own, data, NULL);
    zero_collective_destroy(&gather_op);
    zero_collective_destroy(&scatter_op);
    return st;
}
