/* cross_entropy.cu - loss and gradient of the head: a block per row of logits.
 *
 * One pass finds the maximum and the sum of exponentials; each thread corrects its sum when
 * its maximum grows. The second pass writes the gradient in place. A thread takes every n-th
 * logit, so the order of sums depends on V alone, not on how rows are aligned. */
#include <math.h>

#include "gpu/device_code.h"

#define LONG_ROW   16384 /* words from which on a block has MOST threads: */
#define MOST       1024 /* so few rows at a time that the second pass finds them in caches */
#define AT_ONCE    4
#define ROW_BLOCKS 2048 /* at most */

/* sum of exp(x - most) over some logits; without logits most is -INFINITY. */
struct exponentials {
    float most, sum;
};

/* A maximum of -INFINITY stands for no logit, or for some of probability 0: no number may be
 * taken from it, or NaN would come of it. */
static inline __device__ float base_of(float most)
{
    return most == -INFINITY ? 0.0f : most;
}

/* NaN is never the largest: it makes the sum NaN. */
static inline __device__ float larger(float a, float b)
{
    return b > a ? b : a;
}

static inline __device__ exponentials together(exponentials a, exponentials b)
{
    const float most = larger(a.most, b.most), base = base_of(most);
    return {most, a.sum * expf(a.most - base) + b.sum * expf(b.most - base)};
}

static inline __device__ exponentials warp_together(exponentials x)
{
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        exponentials other;
        other.most = __shfl_xor_sync(ALL, x.most, offset);
        other.sum = __shfl_xor_sync(ALL, x.sum, offset);
        x = together(x, other);
    }
    return x;
}

/* This thread's logits of a row, AT_ONCE at a time: those past the end count as -INFINITY. */
static inline __device__ exponentials look(int64_t V, const float *row)
{
    exponentials x = {-INFINITY, 0.0f};
    for (int64_t j = threadIdx.x; j < V; j += (int64_t)blockDim.x * AT_ONCE) {
        float logit[AT_ONCE], most = x.most;
        for (int k = 0; k < AT_ONCE; k++) {
            const int64_t at = j + k * (int64_t)blockDim.x;
            logit[k] = at < V ? row[at] : -INFINITY;
        }
        for (int k = 0; k < AT_ONCE; k++) most = larger(most, logit[k]);
        const float base = base_of(most);
        float sum = x.sum * expf(x.most - base);
        for (int k = 0; k < AT_ONCE; k++) sum += expf(logit[k] - base);
        x.most = most, x.sum = sum;
    }
    return x;
}

/* All threads of the block get the row's maximum and sum. */
static __device__ exponentials block_together(exponentials x, exponentials *of_warp)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int warps = (int)blockDim.x / WARP;
    const exponentials none = {-INFINITY, 0.0f};
    x = warp_together(x);
    if (lane == 0) of_warp[warp] = x;
    __syncthreads();
    return warp_together(lane < warps ? of_warp[lane] : none);
}

static __device__ void write_gradient(int64_t V, int32_t target, float dscale,
                                      exponentials x, float *row)
{
    const float inverse = dscale / x.sum;
    for (int64_t j = threadIdx.x; j < V; j += blockDim.x) {
        const float d = expf(row[j] - x.most) * inverse;
        row[j] = j == target ? d - dscale : d;
    }
}

static __global__ void __launch_bounds__(MOST)
    cross_entropy(int64_t rows, int64_t V, const int32_t *targets, float dscale,
                  float *logits, float *loss)
{
    SHARED(exponentials, of_warp, WARP);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        float *row = logits + r * V;
        const exponentials x = block_together(look(V, row), of_warp);
        if (threadIdx.x == 0) loss[r] = logf(x.sum) + (x.most - row[targets[r]]);
        __syncthreads(); /* the target has been read; of_warp may be used again */
        if (dscale != 0.0f) write_gradient(V, targets[r], dscale, x, row);
    }
}

void zero_cuda_cross_entropy(cudaStream_t stream, int64_t rows, int64_t V,
                             const int32_t *targets, float dscale, float *logits,
                             float *loss)
{
    if (rows <= 0) return;
    LAUNCH(cross_entropy, block_count(rows, ROW_BLOCKS), V < LONG_ROW ? THREADS : MOST,
           stream, rows, V, targets, dscale, logits, loss);
}
