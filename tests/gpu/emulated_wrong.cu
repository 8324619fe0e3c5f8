/* emulated_wrong.cu - small kernels of which each breaks one rule. */
#include <mma.h>

#include "gpu/launch.h"
#include "gpu/test_emulated_kernels.h"

using namespace nvcuda;

/* ---- missing barriers ---- */

static __global__ void neighbours(bool wrong, int n, const float *in, float *out)
{
    SHARED(float, all, 256);
    const int i = (int)threadIdx.x, first = (int)blockIdx.x * n;
    all[i] = in[first + i];
    if (!wrong) __syncthreads();
    out[first + i] = i + 1 < n ? all[i + 1] : 0.0f;
}

void run_neighbours(bool wrong, int n, const float *in, float *out)
{
    LAUNCH(neighbours, 2, (unsigned)n, 0, wrong, n, in, out);
}

static __global__ void neighbours_of_warp(bool wrong, const float *in, float *out)
{
    SHARED(float, all, 32);
    const int i = (int)threadIdx.x;
    all[i] = in[i];
    if (!wrong) __syncwarp();
    out[i] = i + 1 < 32 ? all[i + 1] : 0.0f;
}

void run_neighbours_of_warp(bool wrong, const float *in, float *out)
{
    LAUNCH(neighbours_of_warp, 1, 32, 0, wrong, in, out);
}

/* Tile t holds t + 1 in each of 64 places. */
static __global__ void tile_sums(bool wrong, int turns, float *out)
{
    SHARED(float, tile, 64);
    float sum = 0;
    for (int t = 0; t < turns; t++) {
        tile[threadIdx.x] = (float)(t + 1);
        __syncthreads();
        for (int i = 0; i < 64; i++) sum += tile[i];
        if (!wrong) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

void run_tile_sums(bool wrong, int turns, float *out)
{
    LAUNCH(tile_sums, 1, 64, 0, wrong, turns, out);
}

/* ---- who does not come ---- */

static __global__ void leaving_lane(float *out)
{
    const int lane = (int)threadIdx.x % 32;
    if (lane == 5) return;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, (float)lane, 1);
}

void run_leaving_lane(float *out)
{
    LAUNCH(leaving_lane, 1, 64, 0, out);
}

static __global__ void leaving_thread(float *out)
{
    if (threadIdx.x == 40) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

void run_leaving_thread(float *out)
{
    LAUNCH(leaving_thread, 2, 64, 0, out);
}

static __global__ void different_lines(float *out)
{
    float x = 1;
    if (threadIdx.x < 16)
        x = __shfl_xor_sync(0xffffffff, x, 1);
    else
        x = __shfl_xor_sync(0xffffffff, x, 1);
    out[threadIdx.x] = x;
}

void run_different_lines(float *out)
{
    LAUNCH(different_lines, 1, 32, 0, out);
}

static __global__ void different_barriers(int border)
{
    if ((int)threadIdx.x < border)
        __syncthreads();
    else
        __syncthreads();
}

void run_different_barriers(void)
{
    LAUNCH(different_barriers, 1, 64, 0, 32);
}

static __global__ void barrier_and_shuffle(float *out)
{
    if (threadIdx.x < 8) __syncthreads();
    out[threadIdx.x] = __shfl_down_sync(0xffffffff, 1.0f, 1);
}

void run_barrier_and_shuffle(float *out)
{
    LAUNCH(barrier_and_shuffle, 1, 32, 0, out);
}

/* ---- masks and widths ---- */

static __global__ void outside_of_mask(float *out)
{
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffff, (float)threadIdx.x, 16);
}

void run_outside_of_mask(float *out)
{
    LAUNCH(outside_of_mask, 1, 32, 0, out);
}

static __global__ void not_in_mask(float *out)
{
    if (threadIdx.x < 17) out[threadIdx.x] = __shfl_sync(0xffff, (float)threadIdx.x, 0);
}

void run_not_in_mask(float *out)
{
    LAUNCH(not_in_mask, 1, 32, 0, out);
}

static __global__ void short_warp(float *out)
{
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, 1.0f, 1);
}

void run_short_warp(float *out)
{
    LAUNCH(short_warp, 1, 8, 0, out);
}

static __global__ void odd_width(int *out)
{
    out[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0, 12);
}

void run_odd_width(int *out)
{
    LAUNCH(odd_width, 1, 32, 0, out);
}

/* ---- memory ---- */

/* Here the array's length is not known any more. */
static __device__ void put(float *to, int i)
{
    to[i] = 1;
}

static __global__ void out_of_range(int i, float *out)
{
    SHARED(float, before, 64);
    SHARED(float, all, 64);
    before[threadIdx.x] = all[threadIdx.x] = 0;
    if (threadIdx.x == 0) put(all, i);
    out[threadIdx.x] = before[threadIdx.x] + all[threadIdx.x];
}

void run_out_of_range(int i, float *out)
{
    LAUNCH(out_of_range, 1, 64, 0, i, out);
}

static __global__ void much_shared_memory(float *out)
{
    SHARED(float, first, 6144);
    SHARED(float, second, 6400);
    first[0] = second[0] = 1;
    out[0] = first[0] + second[0];
}

void run_much_shared_memory(float *out)
{
    LAUNCH(much_shared_memory, 1, 1, 0, out);
}

static __global__ void crooked_tile(float *c)
{
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 1.0f);
    wmma::store_matrix_sync(c + 1, sum, 16, wmma::mem_row_major);
}

void run_crooked_tile(float *c)
{
    LAUNCH(crooked_tile, 1, 32, 0, c);
}

static __global__ void write_one(float *at)
{
    *at = 1;
}

void run_write(float *at)
{
    LAUNCH(write_one, 1, 1, 0, at);
}
