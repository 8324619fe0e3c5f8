/* attention.h - what both kinds of attention kernels share: a call as kernels see it, one head of
 * one sample, a few channels at a time, and dropout's mask of a tile.
 *
 *          keys ->
 *   queries | x .   .   .      a block takes one tile of queries (or of keys) of one head, and
 *      |    | x x   .   .      walks over the tiles of keys (or of queries) that the diagonal
 *      v    | x x x   x .      leaves: tiles above it are never looked at
 *
 * Scores are kept in base 2: power = score * log2(e), for which the device has an instruction. */
#pragma once

#include <stdint.h>

#include <cuda_runtime.h>

#include <Random123/philox.h>

#include "gpu/kernels.h"
#include "gpu/launch.h"
#include "gpu/numbers.h"

#define ZERO_ATTENTION_LOG2_E 1.44269504088896f
#define ZERO_ATTENTION_LOG_2  0.693147180559945f

/* By value to kernels. */
struct zero_attention_call {
    zero_attention a;
    int size;     /* of a head: D */
    float scale;  /* of scores: 1/sqrt(size) */
    float powers; /* scale * log2(e) */
    float keep;   /* what dropout multiplies kept probabilities by */
    uint32_t
        dropped; /* an element whose 32 bits are below this one is dropped; 0: no dropout */
    bool
        wide; /* a thread's channels, 4 or 8 of 16 bits, are 16 aligned bytes in all arrays */
    int64_t first, heads; /* this launch's, among the heads of all samples: whole groups */
    int group;            /* H / K: heads that share keys and values */
    float *means; /* backward: [heads,T], D of each query; dQ's kernel leaves it to dK's */
};

/* The calls of attention_tiles.cu; fp32 has none. */
bool zero_attention_tiles_take(int capability, const zero_attention *a);
void zero_attention_tiles_forward(cudaStream_t stream, const zero_attention_call *call);
void zero_attention_tiles_backward(cudaStream_t stream, const zero_attention_call *call);

/* Rows of one head: the first of them, and how many exist from there on. */
template <zero_type type> struct zero_head_rows {
    const typename stored<type>::number *x;
    int64_t stride, n;
};

/* The same, to be written. */
template <zero_type type> struct zero_head_result {
    typename stored<type>::number *x;
    int64_t stride, n;
};

/* One head of one sample. */
struct zero_head_view {
    int64_t T, C;     /* C: H D */
    int64_t row;      /* of q, k and v: the sample's first */
    int64_t h, k;     /* the head's number, and that of its key head */
    int64_t out, lse; /* its position 0 in out[B,T,H,D] and dout, in lse[B,H,T] */
    int64_t mean;     /* in means[heads,T] */
    int64_t element;  /* of dropout's stream: the head's first */
    uint64_t sample;  /* of dropout's stream */
};

/* Number `of_launch` of the launch's heads: blocks along x have one, sample by sample, or a
 * group of them. */
static inline __device__ zero_head_view zero_head_of(const zero_attention_call &call,
                                                     int64_t of_launch)
{
    const zero_attention &a = call.a;
    const int64_t head = call.first + of_launch, b = head / a.H, h = head % a.H;
    zero_head_view v;
    v.T = a.T, v.C = a.H * a.D;
    v.row = b * a.T, v.h = h, v.k = h / call.group;
    v.out = b * a.T * v.C + h * call.size;
    v.lse = head * a.T, v.mean = of_launch * a.T;
    v.element = (a.first_head + h) * a.T * a.T;
    v.sample = a.dropout.stream.sample + (uint64_t)b;
    return v;
}

enum zero_head_part { ZERO_QUERIES, ZERO_KEYS, ZERO_VALUES };

/* Position t's channels in q, k or v, or in their gradients. */
static inline __device__ int64_t zero_in_heads(const zero_head_view &v, const zero_heads &x,
                                               zero_head_part part, int64_t t)
{
    return (v.row + t) * x.stride + (part == ZERO_QUERIES ? v.h : v.k) * x.head;
}

/* Positions from t on of q, k or v; and of x, which is out or dout. */
template <zero_type type>
static inline __device__ zero_head_rows<type>
zero_rows_of_qkv(const zero_attention_call &call, const zero_head_view &v,
                 zero_head_part part, int64_t t)
{
    typedef const typename stored<type>::number number;
    const zero_attention &a = call.a;
    const zero_heads &x = part == ZERO_QUERIES ? a.q : part == ZERO_KEYS ? a.k : a.v;
    return {(number *)x.x + zero_in_heads(v, x, part, t), x.stride, v.T - t};
}

template <zero_type type>
static inline __device__ zero_head_rows<type> zero_rows_of_out(const zero_head_view &v,
                                                               const void *x, int64_t t)
{
    typedef const typename stored<type>::number number;
    return {(number *)x + v.out + t * v.C, v.C, v.T - t};
}

template <zero_type type>
static inline __device__ zero_head_result<type>
zero_result_in_dqkv(const zero_attention_call &call, const zero_head_view &v,
                    zero_head_part part, int64_t t)
{
    typedef typename stored<type>::number number;
    const zero_attention &a = call.a;
    const zero_heads &x = part == ZERO_QUERIES ? a.dq : part == ZERO_KEYS ? a.dk : a.dv;
    return {(number *)x.x + zero_in_heads(v, x, part, t), x.stride, v.T - t};
}

template <zero_type type>
static inline __device__ zero_head_result<type>
zero_result_in_out(const zero_attention_call &call, const zero_head_view &v, int64_t t)
{
    typedef typename stored<type>::number number;
    return {(number *)call.a.out + v.out + t * v.C, v.C, v.T - t};
}

/* Neighbours in memory, loaded and stored at once. */
template <typename number, int N> struct alignas(N * sizeof(number)) zero_neighbours {
    number x[N];
};

/* Channels c .. c + 3 of a row; zero where there is no such row or channel. */
template <zero_type type>
static inline __device__ float4 zero_load_four(const zero_attention_call &call,
                                               const zero_head_rows<type> &rows,
                                               int64_t row, int c)
{
    typedef typename stored<type>::number number;
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    const int n = row < rows.n ? call.size - c : 0;
    const number *from = rows.x + row * rows.stride + c;
    if (n >= 4 && call.wide) {
        const zero_neighbours<number, 4> all = *(const zero_neighbours<number, 4> *)from;
        return {widened<type>(all.x[0]), widened<type>(all.x[1]), widened<type>(all.x[2]),
                widened<type>(all.x[3])};
    }
    if (n > 0) x.x = widened<type>(from[0]);
    if (n > 1) x.y = widened<type>(from[1]);
    if (n > 2) x.z = widened<type>(from[2]);
    if (n > 3) x.w = widened<type>(from[3]);
    return x;
}

/* Writes the channels c .. c + N - 1 that exist, of a row that exists. */
template <int N, zero_type type>
static inline __device__ void zero_store(const zero_attention_call &call,
                                         const zero_head_result<type> &rows, int64_t row,
                                         int c, const float (&x)[N])
{
    typedef typename stored<type>::number number;
    const int n = row < rows.n ? call.size - c : 0;
    number *to = rows.x + row * rows.stride + c;
    zero_neighbours<number, N> all;
#pragma unroll
    for (int i = 0; i < N; i++) all.x[i] = narrowed<type>(x[i]);
    if (n >= N && call.wide) {
        *(zero_neighbours<number, N> *)to = all;
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (i < n) to[i] = all.x[i];
}

static inline __device__ float zero_dot_four(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* ---- Dropout ----
 *
 * One block of Philox decides eight neighbours. A row's first element need not be the first of its
 * eight, so a mask's row of n keys lies in n / 8 + 1 bytes, a bit per element, and begins at a bit
 * that depends on the row. */

#define ZERO_MASK_BYTES(keys) ((keys) / 8 + 1)

/* Eight elements of base/rng.h's mask, from 8 * block on: bits of those that are kept. */
static inline __device__ unsigned zero_mask_of_eight(const zero_attention_call &call,
                                                     uint64_t sample, uint64_t block)
{
    const zero_rng &rng = call.a.dropout.stream;
    philox4x64_ctr_t counter = {{block, rng.tensor, sample, rng.step}};
    philox4x64_key_t key = {{rng.seed, (uint64_t)rng.purpose}};
    const philox4x64_ctr_t words = philox4x64(counter, key);
    unsigned kept = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        kept |= (unsigned)((uint32_t)words.v[i] >= call.dropped) << (2 * i);
        kept |= (unsigned)((uint32_t)(words.v[i] >> 32) >= call.dropped) << (2 * i + 1);
    }
    return kept;
}

/* All threads: the mask of QUERIES x KEYS elements. */
template <int QUERIES, int KEYS, int THREADS>
static inline __device__ void zero_draw_mask(const zero_attention_call &call,
                                             const zero_head_view &v, int64_t query,
                                             int64_t key, uint8_t *mask)
{
    constexpr int bytes = ZERO_MASK_BYTES(KEYS);
#pragma unroll 1 /* a block of Philox takes many registers */
    for (int i = (int)threadIdx.x; i < QUERIES * bytes; i += THREADS) {
        const int64_t first = v.element + (query + i / bytes) * v.T + key;
        mask[i] =
            (uint8_t)zero_mask_of_eight(call, v.sample, (uint64_t)(first / 8 + i % bytes));
    }
}

/* Dropout multiplies the tile's element (query, key) by this; `first` is the element of the tile's
 * first key in that query's row. */
template <int KEYS>
static inline __device__ float zero_mask_at(const zero_attention_call &call,
                                            const uint8_t *mask, unsigned first, int query,
                                            int key)
{
    const unsigned bit = (first & 7) + (unsigned)key;
    const unsigned byte = mask[query * ZERO_MASK_BYTES(KEYS) + (int)(bit >> 3)];
    return byte >> (bit & 7) & 1 ? call.keep : 0.0f;
}

/* The element at which a query's row of the tile begins, in as many bits as zero_mask_at needs. */
static inline __device__ unsigned zero_mask_first(const zero_head_view &v, int64_t query,
                                                  int64_t key)
{
    return (unsigned)v.element + (unsigned)query * (unsigned)v.T + (unsigned)key;
}
