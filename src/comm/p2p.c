#include "comm/p2p.h"

#define ALIGN      64 /* elements: chunks begin at cache lines if the data does */
#define IN_FLIGHT  8  /* receives, if chunks suffice: links with latency need that many */
#define MIN_CHUNKS 2  /* one arrives while the other is added */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* How many chunks of the own piece are under way at once. size >= 2. */
static int64_t depth(int size)
{
    int64_t chunks = IN_FLIGHT / (size - 1);
    return chunks > MIN_CHUNKS ? chunks : MIN_CHUNKS;
}

/* Many ranks share the room for staging: their chunks shrink. */
static int64_t largest_staged_chunk(int size)
{
    int64_t share = ZERO_COLLECTIVE_STAGING / (depth(size) * (size - 1)) / ALIGN * ALIGN;
    return share > ALIGN ? share : ALIGN;
}

static bool is_staged(const zero_collective_spec *spec, int size)
{
    return spec->kind == ZERO_REDUCE_SCATTER && size > 1;
}

int64_t zero_p2p_chunk(const zero_collective_spec *spec, int size)
{
    int64_t chunk = spec->max_chunk > 0 ? spec->max_chunk : ZERO_COLLECTIVE_CHUNK;
    if (is_staged(spec, size)) chunk = min64(chunk, largest_staged_chunk(size));
    return spec->count > 0 ? min64(chunk, round_up(spec->count)) : chunk;
}

static int64_t count_chunks(const zero_collective_spec *spec, int size)
{
    int64_t chunk = zero_p2p_chunk(spec, size);
    return spec->count / chunk + (spec->count % chunk > 0);
}

int64_t zero_p2p_staging(const zero_collective_spec *spec, int size)
{
    if (!is_staged(spec, size)) return 0;
    int64_t chunks = min64(depth(size), count_chunks(spec, size));
    return chunks * (size - 1) * zero_p2p_chunk(spec, size);
}

int64_t zero_p2p_count_messages(const zero_collective_spec *spec, int size)
{
    return count_chunks(spec, size) * (size - 1);
}

int64_t zero_p2p_count_steps(const zero_collective_spec *spec, int size)
{
    return count_chunks(spec, size) * (2 * (int64_t)(size - 1) + 1);
}

/* What the steps of one program have in common. */
typedef struct {
    const zero_collective_spec *spec;
    int rank, size;
    int64_t chunk, depth;
    zero_step *steps;
    int64_t n; /* steps so far */
} builder;

static int64_t chunk_len(const builder *b, int64_t k)
{
    return min64(b->chunk, b->spec->count - k * b->chunk);
}

static int64_t staged_at(const builder *b, int64_t k)
{
    return k % b->depth * (b->size - 1) * b->chunk;
}

static void exchange(builder *b, int64_t k, int round, int64_t from, int64_t to)
{
    b->steps[b->n++] = (zero_step){.kind = ZERO_STEP_RECEIVE,
                                   .peer = (b->rank - round + b->size) % b->size,
                                   .len = chunk_len(b, k),
                                   .to = to};
    b->steps[b->n++] = (zero_step){.kind = ZERO_STEP_SEND,
                                   .peer = (b->rank + round) % b->size,
                                   .len = chunk_len(b, k),
                                   .from = from};
}

static void copy(builder *b, int64_t k, int64_t from, int64_t to)
{
    b->steps[b->n++] =
        (zero_step){.kind = ZERO_STEP_COPY, .len = chunk_len(b, k), .from = from, .to = to};
}

/* The step list of a chunk starts at 2(size-1)k plus the adds before it: one for each chunk
 * but the last depth-1. Its last receive is the one before its last send. */
static int64_t last_receive(const builder *b, int64_t k)
{
    int64_t adds_before = k >= b->depth ? k - b->depth + 1 : 0;
    return 2 * (int64_t)(b->size - 1) * (k + 1) + adds_before - 2;
}

static void add(builder *b, int64_t k)
{
    int64_t at = k * b->chunk;
    b->steps[b->n++] = (zero_step){.kind = ZERO_STEP_ADD,
                                   .len = chunk_len(b, k),
                                   .from = b->rank * b->spec->stride + at,
                                   .to = at,
                                   .staged = staged_at(b, k),
                                   .after = last_receive(b, k)};
}

static void build_reduce_scatter(builder *b, int64_t n_chunks)
{
    for (int64_t k = 0; k < n_chunks; k++) {
        for (int round = 1; round < b->size; round++) {
            int to = (b->rank + round) % b->size;
            exchange(b, k, round, to * b->spec->stride + k * b->chunk,
                     staged_at(b, k) + (round - 1) * b->chunk);
        }
        if (k >= b->depth - 1) add(b, k - b->depth + 1);
    }
    int64_t added = n_chunks - b->depth + 1;
    for (int64_t k = added > 0 ? added : 0; k < n_chunks; k++) add(b, k);
}

static void build_all_gather(builder *b, int64_t n_chunks)
{
    for (int64_t k = 0; k < n_chunks; k++) {
        int64_t at = k * b->chunk;
        for (int round = 1; round < b->size; round++) {
            int from = (b->rank - round + b->size) % b->size;
            exchange(b, k, round, at, from * b->spec->stride + at);
        }
        copy(b, k, at, b->rank * b->spec->stride + at);
    }
}

void zero_p2p_build(const zero_collective_spec *spec, int rank, int size, zero_step *steps)
{
    builder b = {.spec = spec,
                 .rank = rank,
                 .size = size,
                 .chunk = zero_p2p_chunk(spec, size),
                 .steps = steps};
    int64_t n_chunks = count_chunks(spec, size);
    if (spec->kind == ZERO_ALL_GATHER) {
        build_all_gather(&b, n_chunks);
    } else if (size > 1) {
        b.depth = depth(size);
        build_reduce_scatter(&b, n_chunks);
    } else { /* the sum over one rank is what it has */
        for (int64_t k = 0; k < n_chunks; k++) copy(&b, k, k * b.chunk, k * b.chunk);
    }
}
