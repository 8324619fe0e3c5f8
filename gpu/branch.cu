/* branch.cu - the end of a residual branch: bias, dropout and residual, with the CPU's bits. Compiled
 * without contraction (-fmad=false), like exact.cu. */
#include <math.h>

#include <Random123/philox.h>

#include "gpu/device_code.h"

/* ---- dropout masks: base/rng.h, zero_rng_dropout() ---- */

#define MASKED_BLOCKS 2048 /* blocks of threads, at most */
#define BLOCK_MASKS   8 /* one call of Philox4x64 gives 256 bits, 32 decide one element */

struct masks {
    zero_rng stream;
    uint32_t threshold; /* bits below it drop the element */
    float keep;
    bool drops; /* else all masks are 1 */
};

static masks prepare(const zero_dropout *d)
{
    masks m;
    m.stream = d->stream;
    m.drops = d->p > 0.0f;
    m.threshold = (uint32_t)ceil((double)d->p * 0x1p32);
    m.keep = 1.0f / (1.0f - d->p);
    return m;
}

/* Masks of elements 8 * block .. 8 * block + 7 of one sample. One thread makes all of them: choosing
 * one word by its number would put the words into memory. */
static inline __device__ void make(const masks &m, int64_t sample, int64_t block,
                                   float (&mask)[BLOCK_MASKS])
{
    for (int k = 0; k < BLOCK_MASKS; k++) mask[k] = 1.0f;
    if (!m.drops) return;
    const philox4x64_ctr_t counter = {{(uint64_t)block, m.stream.tensor,
                                       m.stream.sample + (uint64_t)sample, m.stream.step}};
    const philox4x64_key_t key = {{m.stream.seed, (uint64_t)m.stream.purpose}};
    const philox4x64_ctr_t words = philox4x64(counter, key);
    for (int k = 0; k < BLOCK_MASKS; k++)
        mask[k] =
            (uint32_t)(words.v[k / 2] >> (32 * (k & 1))) < m.threshold ? 0.0f : m.keep;
}

/* op.at<W>(sample, i, mask) for elements i .. i + W - 1 of a sample; W divides n. */
template <int W, class operation>
__global__ void __launch_bounds__(THREADS)
    for_masked(masks m, int64_t samples, int64_t n, operation op)
{
    const int64_t blocks = (n + BLOCK_MASKS - 1) / BLOCK_MASKS;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t sample = blockIdx.y; sample < samples; sample += gridDim.y) {
        int64_t block = (int64_t)blockIdx.x * THREADS + threadIdx.x;
        for (; block < blocks; block += step) {
            float mask[BLOCK_MASKS];
            make(m, sample, block, mask);
            for (int k = 0; k < BLOCK_MASKS; k += W)
                if (block * BLOCK_MASKS + k < n)
                    op.template at<W>(sample, block * BLOCK_MASKS + k, mask + k);
        }
    }
}

template <class operation>
static void launch_masked(cudaStream_t stream, const zero_dropout *d, int64_t samples,
                          int64_t n, bool together, const operation &op)
{
    auto kernel = together ? for_masked<TOGETHER, operation> : for_masked<1, operation>;
    const int64_t blocks = zero_divide_up(n, BLOCK_MASKS);
    if (samples <= 0 || n <= 0) return;
    dim3 grid(block_count(zero_divide_up(blocks, THREADS), MASKED_BLOCKS),
              block_count(samples, MASKED_BLOCKS));
    LAUNCH(kernel, grid, THREADS, stream, prepare(d), samples, n, op);
}

struct dropping {
    int64_t n; /* of a sample */
    const float *x;
    float *y;

    template <int W> __device__ void at(int64_t sample, int64_t i, const float *mask) const
    {
        floats<W> value = load<ZERO_FP32, W>(x, sample * n + i);
        for (int k = 0; k < W; k++) value.at[k] = value.at[k] * mask[k];
        store<ZERO_FP32, W>(value, y, sample * n + i);
    }
};

void zero_cuda_dropout(cudaStream_t stream, const zero_dropout *d, int64_t B, int64_t n,
                       const float *x, float *y)
{
    const bool together =
        n % TOGETHER == 0 && aligned(ZERO_FP32, x) && aligned(ZERO_FP32, y);
    launch_masked(stream, d, B, n, together, dropping{n, x, y});
}

template <zero_type type> struct branch_end {
    int64_t n, cols; /* n of a sample */
    const void *bias;
    const float *residual;
    float *x;

    template <int W> __device__ void at(int64_t sample, int64_t i, const float *mask) const
    {
        const floats<W> beside = load<ZERO_FP32, W>(residual, sample * n + i);
        const floats<W> of_column = load<type, W>(bias, i % cols);
        floats<W> value = load<ZERO_FP32, W>(x, sample * n + i);
        for (int k = 0; k < W; k++)
            value.at[k] = beside.at[k] + (value.at[k] + of_column.at[k]) * mask[k];
        store<ZERO_FP32, W>(value, x, sample * n + i);
    }
};

void zero_cuda_add_branch(cudaStream_t stream, const zero_dropout *d, int64_t B, int64_t T,
                          int64_t cols, zero_type type, const void *bias,
                          const float *residual, float *x)
{
    const bool together = cols % TOGETHER == 0 && aligned(type, bias) &&
                          aligned(ZERO_FP32, residual) && aligned(ZERO_FP32, x);
    for_type(type, [&](auto of) {
        const branch_end<decltype(of)::value> op = {T * cols, cols, bias, residual, x};
        launch_masked(stream, d, B, T * cols, together, op);
    });
}
