/* squares.cu - the sum of squares over the tree of base/tree.h, with the CPU's bits.
 *
 *     a warp       loads SPAN elements at once, some blocks of 64: folds each block by halves,
 *                  then adds the blocks' sums in pairs
 *     its turns    2^k spans one after the other, whose sums are added in pairs, too
 *     a block      adds its warps' sums in pairs: one partial sum, in the room
 *     last block   adds the partial sums in pairs
 *
 * The tree lets an odd last subtree pass unchanged. Here it meets a zero instead: squares
 * are not negative, so adding zero changes no bit of theirs. Contraction changes none
 * either: the square of a float is exact in double. */
#include "base/tree.h"
#include "gpu/device_code.h"

#define WARPS         (THREADS / WARP)
#define MOST_PARTIALS 4096
#define SPANS         2 /* that a warp loads before it adds */

/* The warp's sum of x over all pairs: lanes 0 and 1, 2 and 3, ..., then these sums. */
static inline __device__ double add_pairs(double x)
{
    for (int offset = 1; offset < WARP; offset *= 2) x += __shfl_xor_sync(ALL, x, offset);
    return x;
}

/* Adds two halves of a block, which lie in lanes `offset` apart. Of W sums each lane keeps
 * one half; the other half goes to its partner. */
template <int W> __device__ void trade(int offset, double (&sum)[8])
{
    const bool upper = threadIdx.x & (unsigned)offset;
    for (int k = 0; k < W / 2; k++) {
        const double keep = upper ? sum[k + W / 2] : sum[k];
        const double give = upper ? sum[k] : sum[k + W / 2];
        sum[k] = keep + __shfl_xor_sync(ALL, give, offset);
    }
}

/* A span's sum: the warp has squares of W neighbours in each lane. A block lies in 64 / W
 * lanes. */
template <int W> __device__ double fold(double (&sum)[8])
{
    constexpr int lanes = ZERO_TREE_BLOCK / W;
    int offset = lanes / 2;
    if constexpr (W == 8) trade<8>(offset, sum), offset /= 2;
    trade<4>(offset, sum), offset /= 2;
    trade<2>(offset, sum), offset /= 2;
    double x = sum[0];
    for (; offset > 0; offset /= 2) x += __shfl_xor_sync(ALL, x, offset);
    /* Lanes now have one of their W neighbours each: which, the first offsets decide. */
    for (int from = lanes / 2, left = W / 2; left > 0; left /= 2, from /= 2)
        x += __shfl_xor_sync(ALL, x, from);
    for (int from = lanes; from < WARP; from *= 2) x += __shfl_xor_sync(ALL, x, from);
    return x;
}

/* The squares of elements i .. i + W - 1; past the n-th they are zero. */
template <zero_type type, int W, bool together>
__device__ void square(const void *x, int64_t i, int64_t n, double (&sum)[8])
{
    if (together && i <= n - W) {
        const floats<W> in = load<type, W>(x, i);
        for (int k = 0; k < W; k++) sum[k] = (double)in.at[k] * (double)in.at[k];
        return;
    }
    for (int k = 0; k < W; k++) {
        const double value = i + k < n ? (double)load<type, 1>(x, i + k).at[0] : 0.0;
        sum[k] = value * value;
    }
}

/* Where leaf(i) is the i-th of 2^k values: their sum in pairs. Lane l keeps a sum of 2^l
 * values that waits for its neighbour, as in a binary counter. */
template <class function>
__device__ double add_in_turns(int64_t turns, const function &leaf)
{
    const int lane = threadIdx.x % WARP;
    double waiting = 0.0, sum = 0.0;
    for (int64_t i = 0; i < turns; i++) {
        int level = 0;
        sum = leaf(i);
        for (int64_t bits = i; bits & 1; bits >>= 1, level++)
            sum = __shfl_sync(ALL, waiting, level) + sum;
        if (lane == level) waiting = sum;
    }
    return sum;
}

/* Every thread has its warp's sum; thread 0 gets the sum of all in pairs. */
static inline __device__ double add_warps(double sum)
{
    SHARED(double, of_warp, WARP);
    const int warps = (int)blockDim.x / WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x % WARP == 0) of_warp[warp] = sum;
    __syncthreads();
    if (warp > 0) return sum;
    const int lane = threadIdx.x;
    return add_pairs(lane < warps ? of_warp[lane] : 0.0);
}

template <zero_type type, int W, bool together>
__global__ void __launch_bounds__(THREADS)
    sum_squares(int64_t n, const void *x, int64_t turns, double *out)
{
    const int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    const int64_t first = warp * turns * SPANS * WARP * W + threadIdx.x % WARP * W;
    const double sum = add_in_turns(turns, [&](int64_t turn) {
        double a[8], b[8];
        const int64_t i = first + turn * SPANS * WARP * W;
        square<type, W, together>(x, i, n, a);
        square<type, W, together>(x, i + WARP * W, n, b);
        return fold<W>(a) + fold<W>(b);
    });
    const double total = add_warps(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

/* One block: the sum of n partial sums in pairs; `turns` is a power of two, enough for n. */
__global__ void __launch_bounds__(THREADS)
    sum_partials(int64_t n, const double *partial, int64_t turns, double *out)
{
    const int64_t first = threadIdx.x / WARP * turns * WARP + threadIdx.x % WARP;
    const double sum = add_in_turns(turns, [&](int64_t turn) {
        const int64_t i = first + turn * WARP;
        return add_pairs(i < n ? partial[i] : 0.0);
    });
    const double total = add_warps(sum);
    if (threadIdx.x == 0) *out = total;
}

template <zero_type type>
static void launch(cudaStream_t stream, int64_t n, const void *x, zero_cuda_room room,
                   double *sum)
{
    constexpr int W = type == ZERO_FP32 ? 4 : 8;
    const bool together = (uintptr_t)x % 16 == 0;
    auto kernel = together ? sum_squares<type, W, true> : sum_squares<type, W, false>;
    const int64_t most = zero_min((int64_t)(room.bytes / sizeof(double)), MOST_PARTIALS);
    int64_t turns = 1, per_block = (int64_t)WARPS * SPANS * WARP * W;
    while (zero_divide_up(n, per_block * turns) > most) turns *= 2;
    const int64_t partials = zero_max(1, zero_divide_up(n, per_block * turns));
    double *partial = (double *)room.memory;
    LAUNCH(kernel, (unsigned)partials, THREADS, stream, n, x, turns,
           partials == 1 ? sum : partial);
    if (partials == 1) return;
    for (turns = 1; turns * THREADS < partials;) turns *= 2;
    LAUNCH(sum_partials, 1, THREADS, stream, partials, partial, turns, sum);
}

void zero_cuda_sum_squares(cudaStream_t stream, zero_type type, int64_t n, const void *x,
                           zero_cuda_room room, double *sum)
{
    for_type(type, [&](auto of) { launch<decltype(of)::value>(stream, n, x, room, sum); });
}
