/* attention_tiles.h - what the tensor cores' forward and backward kernels share: tiles of channels
 * as 16-bit numbers, and two products of them.
 *
 * A block has four warps, and each has a strip of 16 rows of the block's tile: of queries, or of
 * keys. A strip of scores is dots(), 16 rows of channels times a tile's; channels of the result are
 * mix(), a strip of weights times a tile.
 *
 * Where a thread's numbers are within a fragment is the GPU's secret. A thread finds out by loading
 * a matrix of places into a fragment of the same type. */
#pragma once

#include <math.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "gpu/attention.h"

#define WARPS   4
#define WARP    32
#define THREADS (WARPS * WARP)
#define SIDE    16             /* of a fragment */
#define TILE    (WARPS * SIDE) /* queries, or keys, of a block */
#define ALL     0xffffffffu
#define NUMBERS 8 /* of a fragment of sums that a thread has */

/* Tensor cores of the GPU that is compiled for take these factors. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TAKES_BF16 false
#else
#define TAKES_BF16 true
#endif

template <typename factor> struct factors;
template <> struct factors<__half> {
    static constexpr bool taken = true;
    static __device__ __half of(float x)
    {
        return __float2half_rn(x);
    }
};
template <> struct factors<__nv_bfloat16> {
    static constexpr bool taken = TAKES_BF16;
    static __device__ __nv_bfloat16 of(float x)
    {
        return __float2bfloat16_rn(x);
    }
};

typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, SIDE, SIDE, SIDE, float> sums;
template <typename factor>
using left = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, SIDE, SIDE, SIDE, factor,
                                    nvcuda::wmma::row_major>;
template <typename factor, typename order>
using right =
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, SIDE, SIDE, SIDE, factor, order>;

/* Factors from row to row of a tile with WIDTH columns: rows begin in other banks of shared
 * memory. */
template <int WIDTH> constexpr int pitch = WIDTH + 8;

static inline __device__ int lane()
{
    return (int)threadIdx.x % WARP;
}

static inline __device__ int warp()
{
    return (int)threadIdx.x / WARP;
}

/* ---- Tiles ---- */

/* Four neighbours, stored at once. */
template <typename factor> struct alignas(4 * sizeof(factor)) four_factors {
    factor x[4];
};

template <typename factor> static inline __device__ void store_factors(float4 x, factor *to)
{
    typedef factors<factor> f;
    *(four_factors<factor> *)to = {f::of(x.x), f::of(x.y), f::of(x.z), f::of(x.w)};
}

/* Lanes that load a row of SIZE channels, four each: a power of two. */
template <int SIZE> constexpr int row_lanes = SIZE <= 32 ? 8 : SIZE <= 64 ? 16 : 32;

/* All threads: to[ROWS][pitch] = rows; zero where there is no row or channel. */
template <typename factor, int SIZE, int ROWS>
static inline __device__ void load_tile(const zero_attention_call &call,
                                        const zero_head_rows &rows, factor *to)
{
    constexpr int lanes = row_lanes<SIZE>;
    const int c = (int)threadIdx.x % lanes * 4;
    if (c >= SIZE) return;
#pragma unroll 4
    for (int row = (int)threadIdx.x / lanes; row < ROWS; row += THREADS / lanes)
        store_factors(zero_load_four(call, rows, row, c), to + row * pitch<SIZE> + c);
}

/* All threads: the same for dout, and D = rowsum(dout * out) of its rows. */
template <typename factor, int SIZE, int ROWS>
static inline __device__ void load_douts(const zero_attention_call &call,
                                         const zero_head_view &v, int64_t query, factor *to,
                                         float *mean)
{
    constexpr int lanes = row_lanes<SIZE>;
    const zero_head_rows y = zero_rows_of_out(v, call.a.out, query);
    const zero_head_rows dy = zero_rows_of_out(v, call.a.dout, query);
    const int c = (int)threadIdx.x % lanes * 4;
#pragma unroll 2
    for (int row = (int)threadIdx.x / lanes; row < ROWS; row += THREADS / lanes) {
        const float4 x = zero_load_four(call, dy, row, c);
        float sum = zero_dot_four(x, zero_load_four(call, y, row, c), 0.0f);
#pragma unroll
        for (int step = lanes / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(ALL, sum, step);
        if (c < SIZE) store_factors(x, to + row * pitch<SIZE> + c);
        if (c == 0) mean[row] = sum;
    }
}

/* lse of ROWS queries in base 2; zero for queries that do not exist. */
template <int ROWS>
static inline __device__ void load_lse(const zero_attention_call &call,
                                       const zero_head_view &v, int64_t query, float *lse)
{
    const int i = (int)threadIdx.x;
    if (i >= ROWS) return;
    lse[i] = query + i < v.T ? call.a.lse[v.lse + query + i] * ZERO_ATTENTION_LOG2_E : 0.0f;
}

/* ---- Products ---- */

/* s = a strip of x times y's rows: COLS of them. */
template <typename factor, int SIZE, int COLS>
static inline __device__ void dots(const factor *x, const factor *y, sums (&s)[COLS / SIDE])
{
    left<factor> a;
    right<factor, nvcuda::wmma::col_major> b;
#pragma unroll
    for (int n = 0; n < COLS / SIDE; n++) nvcuda::wmma::fill_fragment(s[n], 0.0f);
#pragma unroll
    for (int k = 0; k < SIZE; k += SIDE) {
        nvcuda::wmma::load_matrix_sync(a, x + k, pitch<SIZE>);
#pragma unroll
        for (int n = 0; n < COLS / SIDE; n++) {
            nvcuda::wmma::load_matrix_sync(b, y + n * SIDE * pitch<SIZE> + k, pitch<SIZE>);
            nvcuda::wmma::mma_sync(s[n], a, b, s[n]);
        }
    }
}

/* to += a strip of weights[][ROWS] times y[ROWS][SIZE] */
template <typename factor, int SIZE, int ROWS>
static inline __device__ void mix(const factor *weights, const factor *y,
                                  sums (&to)[SIZE / SIDE])
{
    left<factor> a;
    right<factor, nvcuda::wmma::row_major> b;
#pragma unroll
    for (int k = 0; k < ROWS; k += SIDE) {
        nvcuda::wmma::load_matrix_sync(a, weights + k, pitch<ROWS>);
#pragma unroll
        for (int n = 0; n < SIZE / SIDE; n++) {
            nvcuda::wmma::load_matrix_sync(b, y + k * pitch<SIZE> + n * SIDE, pitch<SIZE>);
            nvcuda::wmma::mma_sync(to[n], a, b, to[n]);
        }
    }
}

template <int N> static inline __device__ void clear(sums (&x)[N])
{
#pragma unroll
    for (int n = 0; n < N; n++) nvcuda::wmma::fill_fragment(x[n], 0.0f);
}

/* ---- Numbers of a fragment ---- */

/* Where a thread's numbers are: row * SIDE + column. */
struct places {
    int at[NUMBERS];
};

static inline __device__ int row_of(const places &p, int i)
{
    return p.at[i] / SIDE;
}

static inline __device__ int col_of(const places &p, int i)
{
    return p.at[i] % SIDE;
}

/* All threads; `room` holds SIDE * SIDE floats, and may be used again after a barrier. */
static inline __device__ places find_places(float *room)
{
    sums x;
    static_assert(sums::num_elements == NUMBERS, "a warp has each number once");
    for (int i = (int)threadIdx.x; i < SIDE * SIDE; i += THREADS) room[i] = (float)i;
    __syncthreads();
    nvcuda::wmma::load_matrix_sync(x, room, SIDE, nvcuda::wmma::mem_row_major);
    places p;
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) p.at[i] = (int)x.x[i];
    return p;
}

/* A warp writes a strip: to = factor * x. `room` holds 16 rows of STAGE floats. */
#define STAGE (SIDE + 4)
template <int SIZE>
static inline __device__ void store_strip(const zero_attention_call &call,
                                          sums (&x)[SIZE / SIDE], float factor, float *room,
                                          const zero_head_result &to)
{
    const int c = lane() % 4 * 4;
#pragma unroll
    for (int n = 0; n < SIZE / SIDE; n++) {
        __syncwarp(); /* the room's last numbers have been used */
        nvcuda::wmma::store_matrix_sync(room, x[n], STAGE, nvcuda::wmma::mem_row_major);
        __syncwarp();
#pragma unroll
        for (int row = lane() / 4; row < SIDE; row += WARP / 4) {
            float4 y = *(const float4 *)(room + row * STAGE + c);
            y.x *= factor, y.y *= factor, y.z *= factor, y.w *= factor;
            zero_store_four(call, to, row, n * SIDE + c, y);
        }
    }
}

/* ---- Launches: head sizes in four classes ---- */

template <int SIZE> struct head_size {
    static constexpr int value = SIZE;
};

/* f(class of the head's size) */
template <typename function> static void for_head_size(int size, const function &f)
{
    if (size <= 32)
        f(head_size<32>());
    else if (size <= 64)
        f(head_size<64>());
    else if (size <= 96)
        f(head_size<96>());
    else
        f(head_size<128>());
}

static inline dim3 grid_of(const zero_attention_call *call)
{
    return dim3((unsigned)(call->a.B * call->a.H),
                (unsigned)((call->a.T + TILE - 1) / TILE));
}
