/* device_code.h - helpers of all kernels: elements a few at a time, launches, sums of a warp.
 *
 * A kernel that goes through arrays takes W elements per thread: 4, or 8 where rows have 16 bits,
 * loaded and stored up to 16 bytes at once, if all of its arrays are aligned to that; else 1.
 * Arrays are aligned to their elements at least. */
#pragma once

#include "gpu/numbers.h"

#define WARP     32
#define ALL      0xffffffffu /* lanes of a warp */
#define THREADS  256         /* of a block */
#define TOGETHER 4           /* elements that a thread takes at once */
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

/* ---- a few elements of an array ---- */

template <int W> struct floats {
    float at[W];
};

/* In memory, aligned as a whole, but to no more than one load takes. */
#define LOADED 16 /* bytes */
template <typename number, int W>
struct alignas(sizeof(number) * W < LOADED ? sizeof(number) * W : LOADED) group {
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
template <zero_type type, int W>
__device__ group<typename stored<type>::number, W> load_stored(const void *x, int64_t i)
{
    typedef typename stored<type>::number number;
    must_be_aligned((const number *)x + i, alignof(group<number, W>));
    return *(const group<number, W> *)((const number *)x + i);
}

template <zero_type type, int W> __device__ floats<W> load(const void *x, int64_t i)
{
    const auto in = load_stored<type, W>(x, i);
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
    must_be_aligned((number *)x + i, alignof(group<number, W>));
    *(group<number, W> *)((number *)x + i) = out;
}

/* Elements that a thread takes of rows of a type: 16 bytes. */
template <zero_type rows> constexpr int together_of = rows == ZERO_FP32 ? TOGETHER : 8;

/* Whether elements of a type can be taken W at once, from this address on; NULL can. */
template <int W = TOGETHER> bool aligned(zero_type type, const void *x)
{
    return (uintptr_t)x % zero_min((type == ZERO_FP32 ? 4 : 2) * W, LOADED) == 0;
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
void launch_elements(cudaStream_t stream, int64_t n, bool together, const operation &op,
                     int64_t most_blocks = MOST_BLOCKS)
{
    auto kernel = together ? for_elements<TOGETHER, operation> : for_elements<1, operation>;
    const int64_t per_block = THREADS * (together ? TOGETHER : 1);
    if (n <= 0) return;
    LAUNCH(kernel, block_count(zero_divide_up(n, per_block), most_blocks), THREADS, stream,
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

template <int W = TOGETHER, class operation>
void launch_table(cudaStream_t stream, int64_t rows, int64_t cols, bool together,
                  const operation &op)
{
    together = together && cols % W == 0;
    auto kernel = together ? for_table<W, operation> : for_table<1, operation>;
    const int64_t per_block = WARP * (together ? W : 1);
    if (rows <= 0 || cols <= 0) return;
    dim3 grid(block_count(zero_divide_up(cols, per_block), MOST_BLOCKS),
              block_count(zero_divide_up(rows, TABLE_ROWS), MOST_BLOCKS));
    LAUNCH(kernel, grid, dim3(WARP, TABLE_ROWS), stream, rows, cols, op);
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
