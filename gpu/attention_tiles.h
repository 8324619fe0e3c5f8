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
    static constexpr zero_type type = ZERO_FP16;
    static __device__ __half of(float x)
    {
        return __float2half_rn(x);
    }
};
template <> struct factors<__nv_bfloat16> {
    static constexpr bool taken = TAKES_BF16;
    static constexpr zero_type type = ZERO_BF16;
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

/* Channels that a thread has of a row: 16 bytes. */
template <zero_type type> constexpr int channels = type == ZERO_FP32 ? 4 : 8;

/* A thread's channels as factors; rows of 16 bits are factors already. */
template <typename factor, zero_type type>
using few_factors = zero_neighbours<factor, channels<type>>;

/* Channels from c on of a row; zero where there is no such row or channel. */
template <typename factor, zero_type type>
static inline __device__ few_factors<factor, type>
load_factors(const zero_attention_call &call, const zero_head_rows<type> &rows, int64_t row,
             int c)
{
    typedef factors<factor> f;
    if constexpr (type == ZERO_FP32) {
        const float4 x = zero_load_four(call, rows, row, c);
        return {f::of(x.x), f::of(x.y), f::of(x.z), f::of(x.w)};
    } else {
        static_assert(type == f::type, "rows are fp32 or factors");
        few_factors<factor, type> x;
        const int n = row < rows.n ? call.size - c : 0;
        const factor *from = (const factor *)(rows.x + row * rows.stride + c);
        if (n >= channels<type> && call.wide)
            return *(const few_factors<factor, type> *)from;
#pragma unroll
        for (int i = 0; i < channels<type>; i++) x.x[i] = i < n ? from[i] : f::of(0.0f);
        return x;
    }
}

/* Lanes that load a row of SIZE channels: a power of two. */
template <zero_type type, int SIZE>
constexpr int row_lanes = (SIZE <= 32   ? 32
                           : SIZE <= 64 ? 64
                                        : 128) /
                          channels<type>;

/* All threads: to[ROWS][pitch] = rows; zero where there is no row or channel. */
template <typename factor, int SIZE, int ROWS, zero_type type>
static inline __device__ void load_tile(const zero_attention_call &call,
                                        const zero_head_rows<type> &rows, factor *to)
{
    constexpr int lanes = row_lanes<type, SIZE>;
    const int c = (int)threadIdx.x % lanes * channels<type>;
    if (c >= SIZE) return;
#pragma unroll 4
    for (int row = (int)threadIdx.x / lanes; row < ROWS; row += THREADS / lanes)
        *(few_factors<factor, type> *)(to + row * pitch<SIZE> + c) =
            load_factors<factor>(call, rows, row, c);
}

/* The product of four channels from c on of dout's and out's rows. */
template <zero_type type>
static inline __device__ float
dot_of_four(const zero_attention_call &call, const zero_head_rows<type> &dy,
            const zero_head_rows<type> &y, int64_t row, int c)
{
    return zero_dot_four(zero_load_four(call, dy, row, c), zero_load_four(call, y, row, c),
                         0.0f);
}

/* The sum over a row's lanes; each has sums of four channels. One order for any type: lanes that
 * have eight add their two at last, as lanes that have four do. */
template <int lanes, int N> static inline __device__ float sum_of_lanes(float (&sum)[N])
{
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] += __shfl_xor_sync(ALL, sum[i], step);
    return N == 1 ? sum[0] : sum[0] + sum[N - 1];
}

/* All threads: the same for dout, and D = rowsum(dout * out) of its rows, also to call.means. */
template <typename factor, zero_type type, int SIZE, int ROWS>
static inline __device__ void load_douts(const zero_attention_call &call,
                                         const zero_head_view &v, int64_t query, factor *to,
                                         float *mean)
{
    constexpr int lanes = row_lanes<type, SIZE>;
    const zero_head_rows<type> y = zero_rows_of_out<type>(v, call.a.out, query);
    const zero_head_rows<type> dy = zero_rows_of_out<type>(v, call.a.dout, query);
    const int c = (int)threadIdx.x % lanes * channels<type>;
#pragma unroll 2
    for (int row = (int)threadIdx.x / lanes; row < ROWS; row += THREADS / lanes) {
        float sum[channels<type> / 4];
#pragma unroll
        for (int i = 0; i < channels<type> / 4; i++)
            sum[i] = dot_of_four(call, dy, y, row, c + 4 * i);
        const float all = sum_of_lanes<lanes>(sum);
        if (c < SIZE)
            *(few_factors<factor, type> *)(to + row * pitch<SIZE> + c) =
                load_factors<factor>(call, dy, row, c);
        if (c == 0) mean[row] = all;
        if (c == 0 && row < y.n) call.means[v.mean + query + row] = all;
    }
}

/* D of ROWS queries, as load_douts() left it; zero for queries that do not exist. */
template <int ROWS>
static inline __device__ void load_means(const zero_attention_call &call,
                                         const zero_head_view &v, int64_t query,
                                         float *mean)
{
    const int i = (int)threadIdx.x;
    if (i >= ROWS) return;
    mean[i] = query + i < v.T ? call.means[v.mean + query + i] : 0.0f;
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

/* A tile of shared memory as a fragment. */
template <typename fragment, typename factor>
static inline __device__ void load_shared(fragment &to, const factor *tile, unsigned pitch)
{
    nvcuda::wmma::load_matrix_sync(to, tile, pitch);
}

/* nvcc 13 reads a tile of bf16 by 32 bits from generic addresses, unlike one of fp16. Told that it lies
 * in shared memory, it takes one LDSM: instead of 88 loads and 32 MOVM in forward's step, 22. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define LOAD_SHARED_BF16(fragment, operand, order) \
    static inline __device__ void load_shared(fragment &to, const __nv_bfloat16 *tile, \
                                              unsigned pitch) \
    { \
        static_assert(sizeof to.x == 16, "a fragment is four registers of a thread"); \
        unsigned *x = (unsigned *)to.x; \
        asm volatile("wmma.load." operand ".sync.aligned." order \
                     ".m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;" \
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) \
                     : "r"((unsigned)__cvta_generic_to_shared(tile)), "r"(pitch) \
                     : "memory"); \
    }
typedef right<__nv_bfloat16, nvcuda::wmma::row_major> right_by_rows;
typedef right<__nv_bfloat16, nvcuda::wmma::col_major> right_by_cols;
LOAD_SHARED_BF16(left<__nv_bfloat16>, "a", "row")
LOAD_SHARED_BF16(right_by_rows, "b", "row")
LOAD_SHARED_BF16(right_by_cols, "b", "col")
#undef LOAD_SHARED_BF16
#endif

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
        load_shared(a, x + k, pitch<SIZE>);
#pragma unroll
        for (int n = 0; n < COLS / SIDE; n++) {
            load_shared(b, y + n * SIDE * pitch<SIZE> + k, pitch<SIZE>);
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
        load_shared(a, weights + k, pitch<ROWS>);
#pragma unroll
        for (int n = 0; n < SIZE / SIDE; n++) {
            load_shared(b, y + k * pitch<SIZE> + n * SIDE, pitch<SIZE>);
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
template <int SIZE, zero_type type>
static inline __device__ void store_strip(const zero_attention_call &call,
                                          sums (&x)[SIZE / SIDE], float factor, float *room,
                                          const zero_head_result<type> &to)
{
    constexpr int each = channels<type>, lanes = SIDE / each;
    const int c = lane() % lanes * each;
#pragma unroll
    for (int n = 0; n < SIZE / SIDE; n++) {
        __syncwarp(); /* the room's last numbers have been used */
        nvcuda::wmma::store_matrix_sync(room, x[n], STAGE, nvcuda::wmma::mem_row_major);
        __syncwarp();
#pragma unroll
        for (int row = lane() / lanes; row < SIDE; row += WARP / lanes) {
            float y[each];
#pragma unroll
            for (int i = 0; i < each; i += 4) {
                const float4 in = *(const float4 *)(room + row * STAGE + c + i);
                y[i] = factor * in.x, y[i + 1] = factor * in.y;
                y[i + 2] = factor * in.z, y[i + 3] = factor * in.w;
            }
            zero_store<each>(call, to, row, n * SIDE + c, y);
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

template <typename factor> struct factor_type {
    typedef factor number;
};

/* f(type of factors, type of rows, class of the head's size) */
template <typename function>
static void for_call(const zero_attention_call *call, const function &f)
{
    for_head_size(call->size, [&](auto size) {
        const bool is_fp32 = call->a.rows_type == ZERO_FP32;
        if (call->a.factors == ZERO_FP16 && is_fp32)
            f(factor_type<__half>(), of_type<ZERO_FP32>(), size);
        else if (call->a.factors == ZERO_FP16)
            f(factor_type<__half>(), of_type<ZERO_FP16>(), size);
        else if (is_fp32)
            f(factor_type<__nv_bfloat16>(), of_type<ZERO_FP32>(), size);
        else
            f(factor_type<__nv_bfloat16>(), of_type<ZERO_BF16>(), size);
    });
}

/* Blocks of `group` heads. */
static inline dim3 grid_of(const zero_attention_call *call, int group)
{
    return dim3((unsigned)(call->heads / group), (unsigned)((call->a.T + TILE - 1) / TILE));
}
