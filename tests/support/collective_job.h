/* collective_job.h - collectives on data with known results, under MPI.
 *
 * A field is a group with a window, in which every rank has room for a few jobs at once. A
 * job is a collective with its buffers; tree_oracle.h defines its inputs and results. If these
 * are a device's (fake_copier.h), staging lies in the window. */
#pragma once

#include "support/mpi_cmocka.h"

#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/window.h"
#include "support/fake_copier.h"
#include "support/tree_oracle.h"

#define FIELD_JOBS 6
#define MARKER     1 /* `out` first holds the values of this many trials later */

typedef struct {
    zero_comm comm;
    zero_window window; /* two arrays, in and out: [FIELD_JOBS][room] per rank */
    size_t room;        /* bytes */
} field;

/* Collective over the group, which the field then owns. */
static inline field field_open(zero_comm comm, size_t room)
{
    field f = {.comm = comm, .room = zero_round_up_size(room, 64)};
    size_t bytes[2] = {FIELD_JOBS * f.room, FIELD_JOBS * f.room};
    assert_ok(zero_window_init(&f.window, &f.comm, 2, bytes));
    return f;
}

static inline void field_close(field *f)
{
    assert_ok(zero_comm_barrier(&f->comm));
    zero_window_destroy(&f->window);
    zero_comm_destroy(&f->comm);
}

typedef struct {
    zero_collective op;
    field *f;
    zero_collective_spec spec;
    uint64_t trial;
    bool in_place;
    char *in, *out, *staging;
    fake_device *device; /* owned; NULL: the buffers are the host's */
    char *memory;        /* owned: the device's */
} job;

static inline int64_t job_in_len(const job *j)
{
    bool has_pieces =
        j->spec.kind == ZERO_REDUCE_SCATTER || j->spec.kind == ZERO_ALL_REDUCE;
    return has_pieces ? j->f->comm.size * j->spec.stride + j->spec.tail : j->spec.count;
}

static inline int64_t job_out_len(const job *j)
{
    bool has_pieces = j->spec.kind == ZERO_ALL_GATHER || j->spec.kind == ZERO_ALL_REDUCE;
    return has_pieces ? j->f->comm.size * j->spec.stride + j->spec.tail : j->spec.count;
}

static inline float job_marker(const job *j, int64_t i)
{
    int whose = j->spec.one_out ? 0 : j->f->comm.rank + 1;
    return oracle_leaf(j->spec.result, j->trial + MARKER, whose, i);
}

/* True if this rank gets a result. */
static inline bool job_has_out(const job *j)
{
    return j->spec.kind != ZERO_REDUCE || j->f->comm.rank == j->spec.root;
}

/* Puts the buffers in slot `slot` of the rank; the one `out` in that of the node's first rank. */
static inline void job_place(job *j, int slot)
{
    field *f = j->f;
    size_t part = FIELD_JOBS * f->room, own = (size_t)f->window.local_rank * part;
    size_t at = (size_t)slot * f->room;
    j->in = zero_window_array(&f->window, 0) + own + at;
    j->out = zero_window_array(&f->window, 1) + (j->spec.one_out ? 0 : own) + at;
    j->spec.in_apart = j->spec.out_apart = part;
    if (!j->in_place) return;
    size_t piece = (size_t)j->spec.stride * zero_type_size(j->spec.type);
    size_t out_apart = j->spec.one_out ? 0 : part;
    switch (j->spec.kind) {
    case ZERO_REDUCE_SCATTER:
        j->out = j->in + (size_t)f->comm.rank * piece;
        j->spec.out_apart = part + piece;
        break;
    case ZERO_ALL_GATHER:
        j->in = j->out + (size_t)f->comm.rank * piece;
        j->spec.in_apart = out_apart + piece;
        break;
    case ZERO_ALL_REDUCE:
    case ZERO_REDUCE: j->out = j->in; break;
    case ZERO_BROADCAST:
        j->in = j->out;
        j->spec.in_apart = out_apart;
        break;
    }
}

/* Puts staging in slot `slot` of the rank, and the buffers on its device: two rooms, with room
 * between them. */
static inline void job_place_on_device(job *j, int slot)
{
    field *f = j->f;
    job_place(j, slot);
    j->staging = zero_window_array(&f->window, 0) +
                 (size_t)f->window.local_rank * FIELD_JOBS * f->room +
                 (size_t)slot * f->room;
    j->spec.in_apart = j->spec.out_apart = FIELD_JOBS * f->room;
    j->device = fake_device_make(j->trial + (uint64_t)f->comm.rank);
    j->memory = calloc(2, f->room);
    assert_non_null(j->memory);
    size_t piece = (size_t)f->comm.rank * (size_t)j->spec.stride;
    j->in = j->memory;
    j->out = j->memory + f->room;
    if (!j->in_place) return;
    switch (j->spec.kind) {
    case ZERO_REDUCE_SCATTER: j->out = j->in + piece * zero_type_size(j->spec.type); break;
    case ZERO_ALL_GATHER: j->in = j->out + piece * zero_type_size(j->spec.type); break;
    case ZERO_REDUCE:
    case ZERO_ALL_REDUCE:
    case ZERO_BROADCAST: j->out = j->in; break;
    }
}

static inline void job_build(job *j)
{
    field *f = j->f;
    size_t staging = zero_collective_staging(&j->spec, &f->comm.layout);
    if (j->spec.on_device) {
        assert_true(staging <= f->room);
        assert_ok(
            zero_collective_init_on_device(&j->op, &f->comm, &j->spec, &j->device->copier));
        return;
    }
    j->staging = staging > 0 ? aligned_alloc(64, zero_round_up_size(staging, 64)) : NULL;
    assert_true(j->staging || staging == 0);
    assert_ok(zero_collective_init(&j->op, &f->comm, &j->spec));
}

static inline job job_init(field *f, zero_collective_spec spec, uint64_t trial,
                           bool in_place, int slot)
{
    job j = {.f = f, .spec = spec, .trial = trial, .in_place = in_place};
    spec.on_device ? job_place_on_device(&j, slot) : job_place(&j, slot);
    assert_true((size_t)job_in_len(&j) * zero_type_size(spec.type) <= f->room);
    assert_true((size_t)job_out_len(&j) * zero_type_size(spec.result) <= f->room);
    job_build(&j);
    return j;
}

static inline void job_fill_in(job *j)
{
    const zero_collective_spec *s = &j->spec;
    int rank = j->f->comm.rank;
    int64_t first = s->kind == ZERO_ALL_GATHER ? rank * s->stride : 0;
    for (int64_t i = 0; i < job_in_len(j); i++)
        if (s->kind != ZERO_BROADCAST || rank == s->root)
            oracle_store(s->type, j->in, i,
                         oracle_leaf(s->type, j->trial, rank, first + i));
}

/* Collective if the node has one `out`: its first rank prepares it. */
static inline void job_fill(job *j)
{
    const zero_collective_spec *s = &j->spec;
    bool sums_in_place = j->in_place && zero_collective_sums(s->kind) && job_has_out(j);
    bool mine = !s->one_out || j->f->window.local_rank == 0;
    for (int64_t i = 0; mine && !sums_in_place && i < job_out_len(j); i++)
        oracle_store(s->result, j->out, i, job_marker(j, i));
    if (s->one_out) assert_ok(zero_comm_barrier(&j->f->comm));
    job_fill_in(j);
}

static inline void job_begin(job *j)
{
    char *in = j->device ? fake_address(j->in) : j->in;
    char *out = job_has_out(j) ? j->out : NULL;
    if (j->device && out) out = fake_address(out);
    assert_ok(zero_collective_begin(&j->op, in, out, j->staging));
}

/* True for elements between the pieces of an all-reduce. */
static inline bool job_is_gap(const job *j, int64_t i)
{
    const zero_collective_spec *s = &j->spec;
    return s->kind == ZERO_ALL_REDUCE && i < j->f->comm.size * s->stride &&
           i % s->stride >= s->count;
}

static inline float job_expected(const job *j, int64_t i)
{
    const zero_collective_spec *s = &j->spec;
    const zero_comm *comm = &j->f->comm;
    switch (s->kind) {
    case ZERO_REDUCE_SCATTER:
        return oracle_sum(s->type, j->trial, 0, comm->size, comm->rank * s->stride + i);
    case ZERO_ALL_GATHER:
        if (i % s->stride >= s->count) return job_marker(j, i);
        return oracle_leaf(s->type, j->trial, (int)(i / s->stride), i);
    case ZERO_ALL_REDUCE:
        if (job_is_gap(j, i))
            return j->in_place ? oracle_leaf(s->type, j->trial, comm->rank, i)
                               : job_marker(j, i);
        return oracle_sum(s->type, j->trial, 0, comm->size, i);
    case ZERO_REDUCE: return oracle_sum(s->type, j->trial, 0, comm->size, i);
    case ZERO_BROADCAST: break;
    }
    return oracle_leaf(s->type, j->trial, s->root, i);
}

static inline int64_t job_count_wrong_inputs(const job *j)
{
    const zero_collective_spec *s = &j->spec;
    const zero_comm *comm = &j->f->comm;
    int64_t wrong = 0, first = s->kind == ZERO_ALL_GATHER ? comm->rank * s->stride : 0;
    int64_t own = s->kind == ZERO_REDUCE_SCATTER ? comm->rank * s->stride : 0;
    bool sums_in_place = j->in_place && zero_collective_sums(s->kind) && job_has_out(j);
    for (int64_t i = 0; i < job_in_len(j); i++) {
        bool is_sum = sums_in_place && i >= own && i < own + s->count;
        if (s->kind == ZERO_ALL_REDUCE) is_sum = j->in_place && !job_is_gap(j, i);
        if (is_sum || (s->kind == ZERO_BROADCAST && comm->rank != s->root)) continue;
        wrong += !oracle_same(s->type, j->in, i,
                              oracle_leaf(s->type, j->trial, comm->rank, first + i));
    }
    return wrong;
}

static inline void job_complain(const job *j, int64_t wrong)
{
    const zero_collective_spec *s = &j->spec;
    print_error("rank %d of %d on %d nodes, trial %" PRIu64
                ": %s %s of %s (%s), count %" PRId64 ", stride %" PRId64
                ", max_chunk %" PRId64 "%s%s%s: %" PRId64 " wrong\n",
                j->f->comm.rank, j->f->comm.size, j->f->comm.layout.n_nodes, j->trial,
                zero_algorithm_name(s->algorithm), zero_collective_kind_name(s->kind),
                zero_type_name(s->type), zero_type_name(s->result), s->count, s->stride,
                s->max_chunk, j->in_place ? ", in place" : "",
                s->one_out ? ", one out" : "", s->on_device ? ", on a device" : "", wrong);
}

/* True if result and inputs are right after the end. Collective if the node has one `out`, at
 * which other ranks may look until then. */
static inline bool job_is_right(job *j)
{
    int64_t wrong = job_count_wrong_inputs(j);
    for (int64_t i = 0; job_has_out(j) && i < job_out_len(j); i++)
        wrong += !oracle_same(j->spec.result, j->out, i, job_expected(j, i));
    if (wrong > 0) job_complain(j, wrong);
    if (j->device && !fake_is_idle(j->device)) {
        print_error("rank %d: a copy has not ended\n", j->f->comm.rank);
        wrong++;
    }
    if (j->spec.one_out) assert_ok(zero_comm_barrier(&j->f->comm));
    return wrong == 0;
}

static inline void job_destroy(job *j)
{
    zero_collective_destroy(&j->op);
    if (!j->device) free(j->staging);
    free(j->memory);
    free(j->device);
}
