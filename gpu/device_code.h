/* device_code.h - helpers of all kernels: numbers of 16 bits, elements a few at a time, sums
 * of a warp.
 *
 * A kernel that goes through arrays takes W elements per thread: 4, loaded and stored 16
 * bytes (of 16-bit numbers 8) at once, if all of its arrays are aligned to that; else 1.
 * Arrays are aligned to their elements at least. */
#pragma once

#include <string.h>

#include "gpu/launch.h"

#include "base/number.h"
#include "gpu/kernels.h"

#define WARP     32
#define ALL      0xffffffffu /* lanes of a warp */
#define THREADS  256         /* of a block */
#define TOGETHER 4           /* elements that a thread loads at once */
#define PER_SM   4 /* blocks that a multiprocessor should hold, at least: 64 registers */

/* Blocks at most, of either dimension: larger arrays take several turns. GPUs run 1000 to
 * 2000 at a time. */
#define MOST_BLOCKS 8192

/* Loops whose arrays have to stay in registers. */
#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

/* Two files may use one name for different things. */
namespace
{

static inline __device__ int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- numbers: base/half.h defines these conversions ---- */

static inline __device__ uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline __device__ float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline __device__ uint16_t to_bf16(float x)
{
    uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40);
    if (magnitude < 0x00800000u) return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline __device__ float from_fp16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31;
    uint32_t mantissa = x & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000 : 0));
    if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    return float_of(sign | bits_of((float)mantissa * 0x1p-24f));
}

static inline __device__ uint16_t to_fp16(float x)
{
    uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000u) {
        uint32_t units = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | units);
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - (112u << 23)) >> 13));
}

/* The numbers in an array of a zero_type. */
template <zero_type type> struct stored {
    typedef uint16_t number;
};
template <> struct stored<ZERO_FP32> {
    typedef float number;
};

template <zero_type type> __device__ float widened(typename stored<type>::number x)
{
    if constexpr (type == ZERO_BF16)
        return float_of((uint32_t)x << 16);
    else if constexpr (type == ZERO_FP16)
        return from_fp16(x);
    else
        return x;
}

template <zero_type type> __device__ typename stored<type>::number narrowed(float x)
{
    if constexpr (type == ZERO_BF16)
        return to_bf16(x);
    else if constexpr (type == ZERO_FP16)
        return to_fp16(x);
    else
        return x;
}

/* ---- a few elements of an array ---- */

template <int W> struct floats {
    float at[W];
};

/* In memory, aligned as a whole. */
template <typename number, int W> struct alignas(sizeof(number) * W) group {
    number at[W];
};

/* A GPU stops at an address that is not aligned to what is loaded; CPUs do not. */
#ifdef __CUDACC__
static inline __device__ void must_be_aligned(const void *, size_t)
{
}
#else
static inline void must_be_aligned(const void *x, size_t to)
{
    if ((uintptr_t)x % to != 0) __builtin_trap();
}
#endif

/* Elements i .. i + W - 1; the address is aligned to all of them. */
template <zero_type type, int W> __device__ floats<W> load(const void *x, int64_t i)
{
    typedef typename stored<type>::number number;
    must_be_aligned((const number *)x + i, sizeof(group<number, W>));
    const group<number, W> in = *(const group<number, W> *)((const number *)x + i);
    floats<W> out;
    for (int k = 0; k < W; k++) out.at[k] = widened<type>(in.at[k]);
    return out;
}

template <zero_type type, int W>
__device__ void store(const floats<W> &in, void *x, int64_t i)
{
    typedef typename stored<type>::number number;
    group<number, W> out;
    for (int k = 0; k < W; k++) out.at[k] = narrowed<type>(in.at[k]);
    must_be_aligned((number *)x + i, sizeof out);
    *(group<number, W> *)((number *)x + i) = out;
}

/* Whether elements of a type can be taken TOGETHER, from this address on; NULL can. */
static inline bool aligned(zero_type type, const void *x)
{
    return (uintptr_t)x % ((type == ZERO_FP32 ? 4 : 2) * TOGETHER) == 0;
}

/* ---- launches ---- */

static inline unsigned block_count(int64_t wanted, int64_t most)
{
    return (unsigned)(wanted < 1 ? 1 : zero_min(wanted, most));
}

/* op.at<W>(i) for elements i .. i + W - 1 of n. */
template <int W, class operation>
__global__ void __launch_bounds__(THREADS, PER_SM) for_elements(int64_t n, operation op)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS * W;
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * W;
    for (; i <= n - W; i += stride) op.template at<W>(i);
    for (; i < n; i++) op.template at<1>(i); /* the thread whose group the end cuts */
}

template <class operation>
void launch_elements(cudaStream_t stream, int64_t n, bool together, const operation &op)
{
    auto kernel = together ? for_elements<TOGETHER, operation> : for_elements<1, operation>;
    const int64_t per_block = THREADS * (together ? TOGETHER : 1);
    if (n <= 0) return;
    LAUNCH(kernel, block_count(zero_divide_up(n, per_block), MOST_BLOCKS), THREADS, stream,
           n, op);
}

/* Blocks for tables [rows, cols]: a warp has neighbouring columns of one row. */
#define TABLE_ROWS (THREADS / WARP)

/* op.at<W>(row, col) for columns col .. col + W - 1; W divides cols. */
template <int W, class operation>
__global__ void __launch_bounds__(THREADS, PER_SM)
    for_table(int64_t rows, int64_t cols, operation op)
{
    const int64_t step = (int64_t)gridDim.x * WARP * W;
    int64_t row = (int64_t)blockIdx.y * TABLE_ROWS + threadIdx.y;
    for (; row < rows; row += (int64_t)gridDim.y * TABLE_ROWS) {
        int64_t col = ((int64_t)blockIdx.x * WARP + threadIdx.x) * W;
        for (; col < cols; col += step) op.template at<W>(row, col);
    }
}

template <class operation>
void launch_table(cudaStream_t stream, int64_t rows, int64_t cols, bool together,
                  const operation &op)
{
    together = together && cols % TOGETHER == 0;
    auto kernel = together ? for_table<TOGETHER, operation> : for_table<1, operation>;
    const int64_t per_block = WARP * (together ? TOGETHER : 1);
    if (rows <= 0 || cols <= 0) return;
    dim3 grid(block_count(zero_divide_up(cols, per_block), MOST_BLOCKS),
              block_count(zero_divide_up(rows, TABLE_ROWS), MOST_BLOCKS));
    LAUNCH(kernel, grid, dim3(WARP, TABLE_ROWS), stream, rows, cols, op);
}

/* Calls a function that is generic in a zero_type, given as a value: f(of_type<type>()). */
template <zero_type type> struct of_type {
    static constexpr zero_type value = type;
};

template <class function> void for_type(zero_type type, const function &f)
{
    if (type == ZERO_BF16)
        f(of_type<ZERO_BF16>());
    else if (type == ZERO_FP16)
        f(of_type<ZERO_FP16>());
    else
        f(of_type<ZERO_FP32>());
}

/* ---- sums ---- */

/* Every lane gets the sum of all, with the same bits. All lanes call. */
static inline __device__ float warp_sum(float x)
{
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        x += __shfl_xor_sync(ALL, x, offset);
    return x;
}

} // namespace
