#include "bench_case.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "comm/mpi_call.h"
#include "comm/mpi_error.h"

#define ALIGN ((size_t)2 << 20) /* huge pages */
#define PAGE  4096
#define BLOCK 1024 /* elements converted at a time */
#define LINE  64   /* elements: pieces begin at cache lines */
#define ROOT  0

enum { WINDOW_IN, WINDOW_OUT, WINDOW_ONE, WINDOW_ARRAYS };

/* ---- values in the arrays ---- */

/* A whole number from 0 to 7. */
static float value(int rank, int64_t i)
{
    uint32_t mixed = (uint32_t)(i % BENCH_PERIOD + 1) * 2654435761u + (uint32_t)rank * 977u;
    return (float)(mixed * 2246822519u >> 29);
}

static void write_input(const bench_field *field, char *to, size_t bytes)
{
    size_t period = BENCH_PERIOD * zero_type_size(field->type);
    for (size_t at = 0; at < bytes; at += period)
        memcpy(to + at, field->pattern, zero_min_size(bytes - at, period));
}

/* Element i of the result on this rank. */
static float expected(const bench_case *c, int64_t i)
{
    int64_t count = c->spec.count;
    const zero_comm *comm = c->field->comm;
    if (c->spec.kind == ZERO_BROADCAST) return value(ROOT, i);
    if (c->spec.kind == ZERO_ALL_GATHER) return value((int)(i / count), i % count);
    if (c->spec.kind == ZERO_REDUCE_SCATTER) i += comm->rank * count;
    float sum = 0.0f;
    for (int r = 0; r < comm->size; r++) sum += value(r, i);
    return sum;
}

/* ---- field ---- */

static zero_status allocate(bench_field *field)
{
    size_t apart = zero_round_up_size(field->bytes, ALIGN);
    ZERO_TRY(zero_arena_init(&field->arena, 4 * apart));
    field->in = field->arena.base;
    field->out = field->in + apart;
    field->from = field->out + apart;
    field->to = field->from + apart;
    return ZERO_OK;
}

/* The fewest ranks on a node: their parts make the array that a node has once. */
static int64_t smallest_node(const zero_layout *layout)
{
    int64_t least = layout->size;
    for (int r = 0; r < layout->size; r++)
        least = zero_min(least, zero_layout_local_size(layout, r));
    return least;
}

static zero_status make_window(bench_field *field)
{
    int64_t local = smallest_node(&field->comm->layout);
    int64_t part = zero_round_up(zero_divide_up((int64_t)field->bytes, local), PAGE);
    size_t bytes[WINDOW_ARRAYS] = {[WINDOW_IN] = field->bytes,
                                   [WINDOW_OUT] = field->bytes,
                                   [WINDOW_ONE] = (size_t)part};
    return zero_window_init(&field->window, field->comm, WINDOW_ARRAYS, bytes);
}

zero_status bench_field_init(bench_field *field, zero_comm *comm, zero_type type,
                             size_t bytes, int n_buckets, bool needs_window)
{
    size_t piece = bytes / (zero_type_size(type) * (size_t)(comm->size * n_buckets));
    *field = (bench_field){.comm = comm, .type = type, .n_buckets = n_buckets};
    field->count = zero_round_up(zero_max((int64_t)piece, 1), LINE);
    field->bucket_bytes = (size_t)(field->count * comm->size) * zero_type_size(type);
    field->bytes = field->bucket_bytes * (size_t)n_buckets;

    float values[BENCH_PERIOD];
    for (int i = 0; i < BENCH_PERIOD; i++) values[i] = value(comm->rank, i);
    zero_convert(ZERO_FP32, type, BENCH_PERIOD, values, field->pattern);
    zero_status st = zero_agree(comm, allocate(field));
    if (st == ZERO_OK && needs_window) st = make_window(field);
    if (st != ZERO_OK) bench_field_destroy(field);
    return st;
}

void bench_field_destroy(bench_field *field)
{
    zero_window_destroy(&field->window);
    zero_arena_destroy(&field->arena);
    *field = (bench_field){0};
}

static zero_status prepare_copy(void *arg)
{
    bench_field *field = arg;
    write_input(field, field->from, field->bytes);
    return ZERO_OK;
}

static zero_status run_copy(void *arg)
{
    bench_field *field = arg;
    memcpy(field->to, field->from, field->bytes);
    return ZERO_OK;
}

bench_work bench_copy(bench_field *field)
{
    return (bench_work){prepare_copy, run_copy, field};
}

/* ---- case ---- */

/* This rank's part of an array of the window. */
static char *own_part(const bench_field *field, int array)
{
    return zero_window_array(&field->window, array) +
           field->bytes * (size_t)field->window.local_rank;
}

/* This rank's piece of a gather is in `out` already, as a shard is in its parameters: p - 1 pieces
 * move. Between a window and private memory that piece moves as well. */
static void put_in_within_out(bench_case *c)
{
    size_t piece = (size_t)c->field->count * zero_type_size(c->field->type);
    c->in = c->out + piece * (size_t)c->field->comm->rank;
    if (c->variant->memory != BENCH_PRIVATE) c->spec.in_apart = c->spec.out_apart + piece;
}

static void place(bench_case *c, int bucket)
{
    const bench_field *field = c->field;
    size_t at = field->bucket_bytes * (size_t)bucket;
    bench_memory memory = c->variant->memory;
    c->in = field->in;
    c->out = field->out;
    if (memory == BENCH_FROM_WINDOW) {
        c->in = own_part(field, WINDOW_IN);
        c->spec.in_apart = field->bytes;
    }
    if (memory == BENCH_WINDOW) {
        c->out = own_part(field, WINDOW_OUT);
        c->spec.out_apart = field->bytes;
    }
    if (memory == BENCH_IN_PLACE) {
        c->out = zero_window_array(&field->window, WINDOW_ONE);
        c->spec.one_out = true;
    }
    c->in += at;
    c->out += at;
    if (c->variant->kind == ZERO_BROADCAST) c->in = c->out;
    if (c->variant->kind == ZERO_ALL_GATHER && memory != BENCH_FROM_WINDOW)
        put_in_within_out(c);
}

/* A reduce and a broadcast also have S bytes. */
static zero_collective_spec make_spec(const bench_field *field,
                                      const bench_variant *variant, size_t chunk)
{
    bool whole = zero_collective_has_root(variant->kind);
    int64_t count = field->count * (whole ? field->comm->size : 1);
    size_t size = zero_type_size(field->type);
    return (zero_collective_spec){
        .kind = variant->kind,
        .algorithm = variant->algorithm,
        .type = field->type,
        .result = field->type,
        .count = count,
        .stride = count,
        .root = ROOT,
        .max_chunk = zero_divide_up((int64_t)chunk, (int64_t)size),
        .unit = ZERO_NO_UNIT,
    };
}

static zero_status make_program(bench_case *c)
{
    zero_comm *comm = c->field->comm;
    ZERO_TRY(zero_collective_init(&c->op, comm, &c->spec));
    size_t staging = zero_collective_staging(&c->spec, &comm->layout);
    return staging > 0 ? zero_arena_init(&c->staging, staging) : ZERO_OK;
}

zero_status bench_case_init(bench_case *c, bench_field *field, const bench_variant *variant,
                            int bucket, size_t chunk)
{
    *c = (bench_case){
        .field = field, .variant = variant, .spec = make_spec(field, variant, chunk)};
    place(c, bucket);
    zero_status st = zero_agree(field->comm, make_program(c));
    if (st != ZERO_OK) bench_case_destroy(c);
    return st;
}

void bench_case_destroy(bench_case *c)
{
    if (c->op.comm) zero_collective_destroy(&c->op);
    zero_arena_destroy(&c->staging);
    *c = (bench_case){0};
}

static size_t result_bytes(const bench_case *c)
{
    if (c->spec.kind == ZERO_REDUCE && c->field->comm->rank != ROOT) return 0;
    bool has_all = c->spec.kind == ZERO_ALL_GATHER || c->spec.kind == ZERO_ALL_REDUCE;
    int64_t pieces = has_all ? c->field->comm->size : 1;
    return (size_t)(pieces * c->spec.count) * zero_type_size(c->spec.result);
}

static size_t input_bytes(const bench_case *c)
{
    bool has_all = c->spec.kind == ZERO_REDUCE_SCATTER || c->spec.kind == ZERO_ALL_REDUCE;
    int64_t pieces = has_all ? c->field->comm->size : 1;
    return (size_t)(pieces * c->spec.count) * zero_type_size(c->spec.type);
}

zero_status bench_case_prepare(void *arg)
{
    bench_case *c = arg;
    if (c->spec.kind == ZERO_BROADCAST && c->field->comm->rank != ROOT) return ZERO_OK;
    write_input(c->field, c->in, input_bytes(c));
    return ZERO_OK;
}

static zero_status run_blocking(bench_case *c)
{
    MPI_Op add = c->op.add == MPI_OP_NULL ? MPI_SUM : c->op.add;
    MPI_Datatype type = zero_mpi_type(c->spec.type);
    MPI_Comm mpi = c->field->comm->mpi;
    int count = (int)c->spec.count;
    if (c->spec.kind == ZERO_ALL_GATHER) /* this rank's piece is in `out` */
        return zero_mpi(MPI_Allgather(MPI_IN_PLACE, count, type, c->out, count, type, mpi));
    if (c->spec.kind == ZERO_ALL_REDUCE)
        return zero_mpi(
            MPI_Allreduce(c->in, c->out, count * c->field->comm->size, type, add, mpi));
    return zero_mpi(MPI_Reduce_scatter_block(c->in, c->out, count, type, add, mpi));
}

zero_status bench_case_run(void *arg)
{
    bench_case *c = arg;
    if (c->variant->blocking) return run_blocking(c);
    ZERO_TRY(zero_collective_begin(&c->op, c->in, c->out, c->staging.base));
    return zero_collective_wait(&c->op);
}

bench_work bench_case_work(bench_case *c)
{
    return (bench_work){bench_case_prepare, bench_case_run, c};
}

/* ---- check ---- */

/* The relative error of MPI's rounding at each addition. */
static float tolerance(const bench_case *c)
{
    if (c->spec.type == ZERO_FP32 || !zero_collective_sums(c->spec.kind)) return 0.0f;
    return (float)c->field->comm->size * 0x1p-8f;
}

static zero_status compare(const bench_case *c)
{
    float block[BLOCK];
    size_t size = zero_type_size(c->spec.result);
    int64_t n = (int64_t)(result_bytes(c) / size);
    for (int64_t i = 0; i < n; i++) {
        if (i % BLOCK == 0)
            zero_convert(c->spec.result, ZERO_FP32, zero_min(n - i, BLOCK),
                         c->out + i * (int64_t)size, block);
        float found = block[i % BLOCK], right = expected(c, i);
        if (!(fabsf(found - right) <= tolerance(c) * right))
            return zero_fail(
                ZERO_ERR_DIVERGED,
                "%s by %s (%s): element %" PRId64 " of %" PRId64 " is %g instead of %g",
                zero_collective_kind_name(c->spec.kind), c->variant->name,
                bench_memory_name(c->variant->memory), i, n, (double)found, (double)right);
    }
    return ZERO_OK;
}

/* An `out` in place is shared, and only this rank's piece was written before. */
zero_status bench_case_check(bench_case *c)
{
    if (c->variant->memory != BENCH_IN_PLACE) memset(c->out, 0xff, result_bytes(c));
    ZERO_TRY(bench_case_prepare(c));
    ZERO_TRY(bench_case_run(c));
    return zero_agree(c->field->comm, compare(c));
}
