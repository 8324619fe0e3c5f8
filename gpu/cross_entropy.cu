/* cross_entropy.cu - loss and gradient of the head: a block per row of logits.
 *
 * One pass finds the maximum and the sum of exponentials; each thread corrects its sum when
 * its maximum grows. There a thread takes every n-th logit, so the order of sums depends on V alone,
 * not on how rows are aligned. The second pass writes the gradient in place, in turns. One of 16 bits
 * takes half of the row, so what a turn overwrites has been read by that turn or an earlier one:
 *
 *     logits      |   turn 0   |   turn 1   |   turn 2   |
 *     gradient    |  0  |  1  |  2  |                              */
#include <math.h>

#include "gpu/device_code.h"

#define LONG_ROW   16384 /* words from which on a block has MOST threads: */
#define MOST       1024 /* so few rows at a time that the second pass finds them in caches */
#define AT_ONCE    4
#define GROUPS     2    /* of neighbours, that a thread has of a turn */
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

/* W neighbours from j on, of which n are in the row. */
template <int W>
static __device__ floats<W> gradient_at(const zero_cross_entropy &e, int32_t target,
                                        exponentials x, const float *row, int64_t j,
                                        int64_t n)
{
    const float inverse = e.dscale / x.sum;
    floats<W> d = {};
    if (n >= W) d = load<ZERO_FP32, W>(row, j);
    UNROLL for (int k = 0; k < W; k++)
    {
        if (n < W && k < n) d.at[k] = row[j + k];
        d.at[k] = expf(d.at[k] - x.most) * inverse;
        if (j + k == target) d.at[k] -= e.dscale;
    }
    return d;
}

template <zero_type type, int W>
static __device__ void write_gradient(const zero_cross_entropy &e, int32_t target,
                                      exponentials x, float *row)
{
    typename stored<type>::number *to = (typename stored<type>::number *)row;
    const int64_t step = (int64_t)blockDim.x * W;
    for (int64_t turn = 0; turn < e.V; turn += GROUPS * step) {
        const int64_t first = turn + (int64_t)threadIdx.x * W;
        floats<W> d[GROUPS] = {};
        UNROLL for (int g = 0; g < GROUPS; g++)
        {
            const int64_t j = first + g * step;
            if (j < e.V) d[g] = gradient_at<W>(e, target, x, row, j, e.V - j);
        }
        if (type != ZERO_FP32) __syncthreads(); /* the turn's logits have been read */
        UNROLL for (int g = 0; g < GROUPS; g++)
        {
            const int64_t j = first + g * step;
            if (j + W <= e.V) store<type, W>(d[g], to, j);
            UNROLL for (int k = 0; k < W; k++)
            {
                if (j + W > e.V && j + k < e.V) to[j + k] = narrowed<type>(d[g].at[k]);
            }
        }
    }
}

template <zero_type type, int W>
static __global__ void __launch_bounds__(MOST) cross_entropy(zero_cross_entropy e)
{
    SHARED(exponentials, of_warp, WARP);
    for (int64_t r = blockIdx.x; r < e.rows; r += gridDim.x) {
        float *row = e.logits + r * e.stride;
        const exponentials x = block_together(look(e.V, row), of_warp);
        const int32_t target = e.targets[r];
        if (threadIdx.x == 0)
            e.loss[r] = target < 0 ? 0.0f : logf(x.sum) + (x.most - row[target]);
        __syncthreads(); /* the target has been read; of_warp may be used again */
        if (e.dscale == 0.0f) continue;
        zero_cross_entropy counted = e;
        if (target < 0) counted.dscale = 0.0f; /* its gradient is zero */
        write_gradient<type, W>(counted, target, x, row);
    }
}

void zero_cuda_cross_entropy(cudaStream_t stream, const zero_cross_entropy *given)
{
    zero_cross_entropy e = *given;
    e.stride = zero_logits_stride(given);
    const bool together = e.stride % TOGETHER == 0 && aligned(ZERO_FP32, e.logits);
    if (e.rows <= 0) return;
    for_type(e.gradient, [&](auto of) {
        constexpr zero_type type = decltype(of)::value;
        auto kernel = together ? cross_entropy<type, TOGETHER> : cross_entropy<type, 1>;
        LAUNCH(kernel, block_count(e.rows, ROW_BLOCKS), e.V < LONG_ROW ? THREADS : MOST,
               stream, e);
    });
}
