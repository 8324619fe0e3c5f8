/* exact.cu - calls that give the CPU's bits: the optimizer's step, rounding and gradients,
 * dropout and the end of residual branches. Compiled without contraction (-fmad=false): a
 * fused multiply-add would round once where the CPU rounds twice. Division and square root
 * are IEEE's by nvcc's defaults. */
#include <math.h>

#include <Random123/philox.h>

#include "base/elementary.h"
#include "gpu/device_code.h"

/* ---- x = 0 ---- */

struct clearing {
    float *x;

    template <int W> __device__ void at(int64_t i) const
    {
        const floats<W> zeros = {};
        store<ZERO_FP32, W>(zeros, x, i);
    }
};

void zero_cuda_clear(cudaStream_t stream, int64_t n, float *x)
{
    launch_elements(stream, n, aligned(ZERO_FP32, x), clearing{x});
}

/* ---- AdamW ---- */

/* The numbers of one step, made by the host as the cpu backend makes them. */
struct adamw_factors {
    float grad_scale, beta1, rest1, beta2, rest2, unbias1, unbias2, lr, decay, eps;
};

static adamw_factors prepare(const zero_adamw *h)
{
    adamw_factors f;
    f.grad_scale = h->grad_scale;
    f.beta1 = h->beta1, f.rest1 = 1.0f - h->beta1;
    f.beta2 = h->beta2, f.rest2 = 1.0f - h->beta2;
    f.unbias1 = (float)(1.0 / (1.0 - zero_power((double)h->beta1, h->step)));
    f.unbias2 = (float)(1.0 / (1.0 - zero_power((double)h->beta2, h->step)));
    f.lr = h->lr, f.decay = h->lr * h->weight_decay;
    f.eps = h->eps;
    return f;
}

/* Numbers below `limit` become zero of their sign; NaN stays. */
static inline __device__ float flushed(float x, float limit)
{
    return fabsf(x) < limit ? float_of(bits_of(x) & 0x80000000u) : x;
}

/* Loshchilov & Hutter 2019, algorithm 2. */
static inline __device__ void move(const adamw_factors &f, float grad, float &master,
                                   float &m, float &v)
{
    float g = grad * f.grad_scale;
    m = flushed(m, ZERO_ADAMW_LEAST_MOMENT);
    v = flushed(v, ZERO_ADAMW_LEAST_MOMENT);
    m = f.beta1 * m + f.rest1 * g;     /* line 7 */
    v = f.beta2 * v + f.rest2 * g * g; /* line 8 */
    float moving = flushed(m, ZERO_ADAMW_LEAST_MOVE) * f.unbias1;
    float step = f.lr * moving / (sqrtf(v * f.unbias2) + f.eps);
    master = master - f.decay * master - step; /* line 12 */
}

template <zero_type type> struct moving_parameters {
    adamw_factors f;
    zero_adamw_arrays a;

    /* The largest word does not depend on the order of threads. */
    template <int W>
    __device__ void note_changes(const group<uint16_t, W> &param, const floats<W> &master,
                                 int64_t i) const
    {
        for (int k = 0; k < W; k++)
            if (param.at[k] != narrowed<type>(master.at[k]))
                atomicMax((unsigned long long *)a.changed,
                          ~(unsigned long long)(a.first + i + k)); /* zero_changed() */
    }

    template <int W> __device__ void at(int64_t i) const
    {
        const floats<W> grad = load<type, W>(a.grad, i);
        floats<W> master = load<ZERO_FP32, W>(a.master, i);
        floats<W> m = load<ZERO_FP32, W>(a.m, i), v = load<ZERO_FP32, W>(a.v, i);
        if constexpr (type != ZERO_FP32)
            if (a.changed) note_changes(load_stored<type, W>(a.param, i), master, i);
        for (int k = 0; k < W; k++) move(f, grad.at[k], master.at[k], m.at[k], v.at[k]);
        store<ZERO_FP32, W>(master, a.master, i);
        store<ZERO_FP32, W>(m, a.m, i);
        store<ZERO_FP32, W>(v, a.v, i);
        if constexpr (type != ZERO_FP32) store<type, W>(master, a.param, i);
    }
};

void zero_cuda_adamw(cudaStream_t stream, const zero_adamw *h, const zero_adamw_arrays *a)
{
    const bool together = aligned(a->type, a->grad) && aligned(ZERO_FP32, a->master) &&
                          aligned(ZERO_FP32, a->m) && aligned(ZERO_FP32, a->v) &&
                          aligned(a->type, a->param);
    for_type(a->type, [&](auto type) {
        const moving_parameters<decltype(type)::value> op = {prepare(h), *a};
        launch_elements(stream, a->n, together, op);
    });
}

/* ---- rounding ---- */

template <zero_type type> struct rounding {
    const float *in;
    void *out;

    template <int W> __device__ void at(int64_t i) const
    {
        store<type, W>(load<ZERO_FP32, W>(in, i), out, i);
    }
};

void zero_cuda_round(cudaStream_t stream, zero_type type, int64_t n, const float *in,
                     void *out)
{
    const bool together = aligned(ZERO_FP32, in) && aligned(type, out);
    for_type(type, [&](auto to) {
        launch_elements(stream, n, together, rounding<decltype(to)::value>{in, out});
    });
}

template <zero_type type> struct accumulating {
    const float *sum, *leaf;
    float *out;

    template <int W> __device__ void at(int64_t i) const
    {
        floats<W> x = load<ZERO_FP32, W>(leaf, i);
        for (int k = 0; k < W; k++) x.at[k] = widened<type>(narrowed<type>(x.at[k]));
        if (sum) {
            const floats<W> before = load<ZERO_FP32, W>(sum, i);
            for (int k = 0; k < W; k++) x.at[k] = before.at[k] + x.at[k];
        }
        store<ZERO_FP32, W>(x, out, i);
    }
};

void zero_cuda_accumulate(cudaStream_t stream, zero_type type, int64_t n, const float *sum,
                          const float *leaf, float *out)
{
    const bool together =
        aligned(ZERO_FP32, sum) && aligned(ZERO_FP32, leaf) && aligned(ZERO_FP32, out);
    for_type(type, [&](auto of) {
        const accumulating<decltype(of)::value> op = {sum, leaf, out};
        launch_elements(stream, n, together, op);
    });
}

template <zero_type from, zero_type to> struct converting {
    const void *in;
    void *out;
    int64_t stride, apart;

    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        store<to, W>(load<from, W>(in, row * stride + col), out, row * apart + col);
    }
};

void zero_cuda_convert(cudaStream_t stream, int64_t rows, int64_t cols, int64_t stride,
                       zero_type from, const void *in, zero_type to, int64_t apart,
                       void *out)
{
    const bool together = aligned(from, in) && aligned(to, out) && stride % TOGETHER == 0 &&
                          apart % TOGETHER == 0;
    for_type(from, [&](auto source) {
        for_type(to, [&](auto target) {
            const converting<decltype(source)::value, decltype(target)::value> op = {
                in, out, stride, apart};
            launch_table(stream, rows, cols, together, op);
        });
    });
}

/* ---- dropout masks: base/rng.h, zero_rng_dropout() ---- */

#define MASKED_BLOCKS 2048 /* blocks of threads, at most */
#define BLOCK_MASKS   8 /* one call of Philox4x64 gives 256 bits, 32 decide one element */

struct masks {
    zero_rng stream;
    uint32_t threshold; /* bits below it drop the element */
    float keep;
    bool drops; /* else all masks are 1 */
};

static masks prepare_masks(const zero_dropout *d)
{
    masks m;
    m.stream = d->stream;
    m.drops = d->p > 0.0f;
    m.threshold = (uint32_t)ceil((double)d->p * 0x1p32);
    m.keep = 1.0f / (1.0f - d->p);
    return m;
}

/* Masks of elements 8 * block .. 8 * block + 7 of one sample. One thread makes all of them:
 * choosing one word by its number would put the words into memory. */
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

/* op.at<W>(sample, i, place, mask) for elements i .. i + W - 1 of a sample; W divides n. A thread asks
 * op.begin() for the place of its first element; the place of each further element is one more. */
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
            const int64_t first = block * BLOCK_MASKS, place = op.begin(first);
            for (int k = 0; k < BLOCK_MASKS; k += W)
                if (first + k < n)
                    op.template at<W>(sample, first + k, place + k, mask + k);
        }
    }
}

template <int W, class operation>
static void launch_masked(cudaStream_t stream, const zero_dropout *d, int64_t samples,
                          int64_t n, bool together, const operation &op)
{
    auto kernel = together ? for_masked<W, operation> : for_masked<1, operation>;
    const int64_t blocks = zero_divide_up(n, BLOCK_MASKS);
    if (samples <= 0 || n <= 0) return;
    dim3 grid(block_count(zero_divide_up(blocks, THREADS), MASKED_BLOCKS),
              block_count(samples, MASKED_BLOCKS));
    LAUNCH(kernel, grid, THREADS, stream, prepare_masks(d), samples, n, op);
}

template <zero_type rows> struct dropping {
    int64_t n; /* of a sample */
    const void *x;
    void *y;

    __device__ int64_t begin(int64_t) const
    {
        return 0;
    }

    template <int W>
    __device__ void at(int64_t sample, int64_t i, int64_t, const float *mask) const
    {
        floats<W> value = load<rows, W>(x, sample * n + i);
        for (int k = 0; k < W; k++) value.at[k] = value.at[k] * mask[k];
        store<rows, W>(value, y, sample * n + i);
    }
};

void zero_cuda_dropout(cudaStream_t stream, const zero_dropout *d, zero_type rows_type,
                       int64_t B, int64_t n, const void *x, void *y)
{
    for_type(rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        const bool together = n % W == 0 && aligned<W>(rows, x) && aligned<W>(rows, y);
        launch_masked<W>(stream, d, B, n, together, dropping<rows>{n, x, y});
    });
}

template <zero_type type, zero_type rows> struct branch_end {
    int64_t n, cols; /* n of a sample */
    const void *bias, *residual, *in;
    void *out;

    /* The column of a mask's first element: a division of 64 bits each takes a call, and the stack. */
    __device__ int64_t begin(int64_t i) const
    {
        return i % cols;
    }

    template <int W>
    __device__ void at(int64_t sample, int64_t i, int64_t column, const float *mask) const
    {
        while (column >= cols) column -= cols;
        const floats<W> beside = load<rows, W>(residual, sample * n + i);
        floats<W> value = load<rows, W>(in, sample * n + i);
        if (bias) {
            const floats<W> of_column = load<type, W>(bias, column);
            for (int k = 0; k < W; k++) value.at[k] += of_column.at[k];
        }
        for (int k = 0; k < W; k++) value.at[k] = beside.at[k] + value.at[k] * mask[k];
        store<rows, W>(value, out, sample * n + i);
    }
};

void zero_cuda_add_branch(cudaStream_t stream, const zero_branch *b)
{
    const int64_t n = b->T * b->cols;
    for_types(b->type, b->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        constexpr int W = together_of<rows>;
        const bool together = b->cols % W == 0 && aligned<W>(type, b->bias) &&
                              aligned<W>(rows, b->residual) && aligned<W>(rows, b->in) &&
                              aligned<W>(rows, b->out);
        const branch_end<type, rows> op = {n, b->cols, b->bias, b->residual, b->in, b->out};
        launch_masked<W>(stream, &b->dropout, b->B, n, together, op);
    });
}
