/* emulated_right.cu - small kernels that use each word of the dialect. */
#include <mma.h>

#include "gpu/launch.h"
#include "gpu/test_emulated_kernels.h"

using namespace nvcuda;

static __global__ void scale(int64_t n, float factor, float *x)
{
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

void run_scale(cudaStream_t stream, int64_t n, float factor, float *x)
{
    LAUNCH(scale, (unsigned)((n + 127) / 128), 128, stream, n, factor, x);
}

static __global__ void count(int turns, float *out)
{
    for (int i = 0; i < turns; i++) out[0] += 1.0f;
}

void run_count(cudaStream_t stream, int turns, float *out)
{
    LAUNCH(count, 1, 1, stream, turns, out);
}

static __global__ void numbers(int *out)
{
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread =
        threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    out[i] = (int)i;
}

void run_numbers(dim3 grid, dim3 block, int *out)
{
    LAUNCH(numbers, grid, block, 0, out);
}

/* ---- warps ---- */

static __global__ void shuffles(int by, int width, int *out)
{
    const unsigned all = 0xffffffff;
    const int lane = (int)threadIdx.x;
    out[lane] = __shfl_sync(all, lane, by, width);
    out[32 + lane] = __shfl_up_sync(all, lane, (unsigned)by, width);
    out[64 + lane] = __shfl_down_sync(all, lane, (unsigned)by, width);
    out[96 + lane] = __shfl_xor_sync(all, lane, by, width);
}

void run_shuffles(int by, int width, int *out)
{
    LAUNCH(shuffles, 1, 32, 0, by, width, out);
}

template <typename T> static __device__ T sum_of_warp(T x)
{
    for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(0xffffffff, x, by);
    return x;
}

static __global__ void sums(double *out)
{
    SHARED(double, of_warps, 32);
    const double sum = sum_of_warp((double)threadIdx.x + 1.0);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    out[blockIdx.x] = 0;
    for (unsigned w = 0; w < blockDim.x / 32; w++) out[blockIdx.x] += of_warps[w];
}

void run_sums(int blocks, int threads, double *out)
{
    LAUNCH(sums, (unsigned)blocks, (unsigned)threads, 0, out);
}

/* The two halves of a warp meet by themselves, the second one more often. */
static __global__ void votes(unsigned *out)
{
    const unsigned lane = threadIdx.x, mine = lane < 16 ? 0x0000ffff : 0xffff0000;
    if (lane >= 16) __syncwarp(mine);
    out[lane] = __ballot_sync(mine, lane % 2 == lane / 16);
    if (!__any_sync(mine, lane == 3 || lane == 19)) out[lane] = 0;
    if (__any_sync(mine, 0)) out[lane] = 0;
}

void run_votes(unsigned *out)
{
    LAUNCH(votes, 1, 32, 0, out);
}

/* ---- 16 bits ---- */

static __global__ void round_both(int n, const float *x, float *fp16, float *bf16)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    fp16[i] = __half2float(__float2half_rn(x[i]));
    bf16[i] = __bfloat162float(__float2bfloat16_rn(x[i]));
}

void run_round(int n, const float *x, float *fp16, float *bf16)
{
    LAUNCH(round_both, (unsigned)(n + 63) / 64, 64, 0, n, x, fp16, bf16);
}

static __device__ void narrow(float x, __half *to)
{
    *to = __float2half_rn(x);
}

static __device__ void narrow(float x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16_rn(x);
}

/* The tiles' rows are 24 elements apart. */
template <typename T, typename LayoutA, typename LayoutB>
static __global__ void tiles(const float *a, const float *b, float factor, float *c)
{
    SHARED(T, narrow_a, 16 * 24);
    SHARED(T, narrow_b, 16 * 24);
    for (unsigned i = threadIdx.x; i < 256; i += 32) {
        narrow(a[i], &narrow_a[i / 16 * 24 + i % 16]);
        narrow(b[i], &narrow_b[i / 16 * 24 + i % 16]);
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LayoutA> tile_a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> tile_b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(tile_a, narrow_a, 24);
    wmma::load_matrix_sync(tile_b, narrow_b, 24);
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_col_major);
    wmma::mma_sync(sum, tile_a, tile_b, sum);
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= factor;
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

template <typename T>
static void run_tiles_of(bool a_by_rows, bool b_by_rows, const float *a, const float *b,
                         float factor, float *c)
{
    typedef wmma::row_major rows;
    typedef wmma::col_major cols;
    if (a_by_rows && b_by_rows) LAUNCH((tiles<T, rows, rows>), 1, 32, 0, a, b, factor, c);
    if (a_by_rows && !b_by_rows) LAUNCH((tiles<T, rows, cols>), 1, 32, 0, a, b, factor, c);
    if (!a_by_rows && b_by_rows) LAUNCH((tiles<T, cols, rows>), 1, 32, 0, a, b, factor, c);
    if (!a_by_rows && !b_by_rows) LAUNCH((tiles<T, cols, cols>), 1, 32, 0, a, b, factor, c);
}

void run_tiles(bool bf16, bool a_by_rows, bool b_by_rows, const float *a, const float *b,
               float factor, float *c)
{
    if (bf16)
        run_tiles_of<__nv_bfloat16>(a_by_rows, b_by_rows, a, b, factor, c);
    else
        run_tiles_of<__half>(a_by_rows, b_by_rows, a, b, factor, c);
}
