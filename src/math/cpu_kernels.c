#include "math/cpu_kernels.h"

#include "math/cpu_adamw.h"
#include "math/cpu_softmax.h"
#include "math/cpu_turn.h"

/* This file is compiled once per instruction set; the build names each table. */
extern const zero_cpu_kernels ZERO_KERNELS;

/* Elements computed at a time, while those AHEAD of them are prefetched. */
#define STRIDE 256
#define AHEAD  512

static int64_t stride_len(int64_t n, int64_t at)
{
    return zero_min(n - at, STRIDE);
}

/* Long loop bodies do not run far enough ahead of their loads: the backward pass of GELU
 * takes 0.8 ns per element with this prefetch and 2.7 without. */
static inline void prefetch_ahead(int64_t n, const float *x)
{
    for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(x + AHEAD + i, 0, 3);
}

static void add(int64_t n, const float *a, const float *b, float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

static void add_branch(int64_t n, const float *bias, const float *residual, const float *in,
                       float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = residual[i] + (in[i] + bias[i]);
}

static void multiply(int64_t n, const float *a, const float *b, float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = a[i] * b[i];
}

static void scale(int64_t n, float factor, const float *x, float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = factor * x[i];
}

/* GELU's 0.5 (1 + tanh u) is the logistic function of 2u, u = sqrt(2/pi) (x + 0.044715
 * x^3). */
#define TWO_U_X1 1.5957691216f   /* 2 sqrt(2/pi) */
#define TWO_U_X3 0.071354816273f /* 2 sqrt(2/pi) 0.044715 */

static inline float exponential_of_minus_2u(float x, float x_squared)
{
    return exponential(x * (-TWO_U_X1 - TWO_U_X3 * x_squared));
}

static inline float gelu_of(float x)
{
    return x / (1.0f + exponential_of_minus_2u(x, x * x));
}

static inline float gelu_slope(float x)
{
    /* Beyond 10 the derivative is 0 or 1 in floats, but x * x would overflow early. */
    float z = x < -10.0f ? -10.0f : x;
    z = z > 10.0f ? 10.0f : z;
    float zz = z * z, s = 1.0f / (1.0f + exponential_of_minus_2u(z, zz));
    return s + s * (z * (1.0f - s) * (TWO_U_X1 + 3.0f * TWO_U_X3 * zz));
}

INLINE void bias_gelu_as(bool is_exact, int64_t n, const float *bias, float *x, float *y)
{
    for (int64_t at = 0; at < n; at += STRIDE) {
        const int64_t len = stride_len(n, at), end = at + len;
        prefetch_ahead(len, x + at);
        prefetch_ahead(len, y + at);
#pragma omp simd
        for (int64_t i = at; i < end; i++) {
            x[i] += bias[i];
            y[i] = is_exact ? exact_gelu(x[i]) : gelu_of(x[i]);
        }
    }
}

static void bias_gelu(bool is_exact, int64_t n, const float *bias, float *x, float *y)
{
    if (is_exact)
        bias_gelu_as(true, n, bias, x, y);
    else
        bias_gelu_as(false, n, bias, x, y);
}

INLINE void gelu_backward_as(bool is_exact, int64_t n, const float *x, const float *dy,
                             float *dx, float *dbias)
{
    for (int64_t at = 0; at < n; at += STRIDE) {
        const int64_t len = stride_len(n, at), end = at + len;
        prefetch_ahead(len, x + at);
        prefetch_ahead(len, dy + at);
#pragma omp simd
        for (int64_t i = at; i < end; i++) {
            float d = dy[i] * (is_exact ? exact_gelu_slope(x[i]) : gelu_slope(x[i]));
            dx[i] = d;
            dbias[i] += d;
        }
    }
}

static void bias_gelu_backward(bool is_exact, int64_t n, const float *x, const float *dy,
                               float *dx, float *dbias)
{
    if (is_exact)
        gelu_backward_as(true, n, x, dy, dx, dbias);
    else
        gelu_backward_as(false, n, x, dy, dx, dbias);
}

static void swiglu(int64_t n, const float *z, const float *u, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = z[i] / (1.0f + exponential(-z[i])) * u[i];
}

/* With s = sigmoid(z):  dz = dy u s (1 + z (1 - s)),  du = dy z s. */
static void swiglu_backward(int64_t n, const float *z, const float *u, float *d, float *du)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float s = 1.0f / (1.0f + exponential(-z[i])), dy = d[i];
        d[i] = dy * u[i] * (s * (1.0f + z[i] * (1.0f - s)));
        du[i] = dy * (z[i] * s);
    }
}

#include "math/cpu_halves.h"

static double sum_square_deviations(int64_t n, const float *x, float mean)
{
    float term[CHUNK];
    double total = 0.0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t len = chunk_len(n, at);
#pragma omp simd
        for (int64_t i = 0; i < len; i++) term[i] = (x[at + i] - mean) * (x[at + i] - mean);
        total += (double)sum_chunk(len, term);
    }
    return total;
}

static void layernorm(const zero_layernorm_args *n)
{
    const int64_t C = n->C;
    const float *x = n->x, *gain = n->gain, *bias = n->bias;
    float *y = n->y;
    for (int64_t r = 0; r < n->rows; r++, x += C, y += C) {
        prefetch_ahead(C, x);
        prefetch_ahead(C, y);
        float mu = n->mean ? (float)(sum(C, x) / (double)C) : 0.0f;
        double variance = sum_square_deviations(C, x, mu) / (double)C;
        float scale = (float)(1.0 / sqrt(variance + (double)n->eps));
        if (n->mean) n->mean[r] = mu;
        n->rstd[r] = scale;
        if (!bias) {
#pragma omp simd
            for (int64_t c = 0; c < C; c++) y[c] = (x[c] - mu) * scale * gain[c];
            continue;
        }
#pragma omp simd
        for (int64_t c = 0; c < C; c++) y[c] = (x[c] - mu) * scale * gain[c] + bias[c];
    }
}

/* The sum over c of dy gain xhat. */
static double project(int64_t C, const float *x, const float *gain, float mean, float rstd,
                      const float *dy)
{
    float term[CHUNK];
    double total = 0.0;
    for (int64_t at = 0; at < C; at += CHUNK) {
        int64_t len = chunk_len(C, at);
#pragma omp simd
        for (int64_t i = 0; i < len; i++)
            term[i] = dy[at + i] * gain[at + i] * ((x[at + i] - mean) * rstd);
        total += (double)sum_chunk(len, term);
    }
    return total;
}

static float mean_of(const zero_layernorm_grad_args *n, int64_t r)
{
    return n->mean ? n->mean[r] : 0.0f;
}

/* What row r adds to channels [first, end) of dgain and dbias. */
static inline void add_norm_sums(const zero_layernorm_grad_args *n, int64_t r,
                                 int64_t first, int64_t end)
{
    const float *x = (const float *)n->x + r * n->C, *dy = (const float *)n->dy + r * n->C;
    const float mu = mean_of(n, r), scale = n->rstd[r];
    float *dgain = n->dgain, *dbias = n->dbias;
    if (!dbias) {
#pragma omp simd
        for (int64_t c = first; c < end; c++) dgain[c] += dy[c] * ((x[c] - mu) * scale);
        return;
    }
#pragma omp simd
    for (int64_t c = first; c < end; c++) {
        dgain[c] += dy[c] * ((x[c] - mu) * scale);
        dbias[c] += dy[c];
    }
}

/* With g = dy gain:  dx += rstd (g - mean(g) - xhat mean(g xhat)); without a mean nothing
 * depends on mean(g). */
static void layernorm_backward(const zero_layernorm_grad_args *n)
{
    const int64_t C = n->C;
    const float *x = n->x, *gain = n->gain, *dy = n->dy;
    float *dx = n->dx;
    for (int64_t r = 0; r < n->rows; r++, x += C, dy += C, dx += C) {
        float mu = mean_of(n, r), scale = n->rstd[r];
        prefetch_ahead(C, x);
        prefetch_ahead(C, dy);
        prefetch_ahead(C, dx);
        float along_one = n->mean ? (float)(dot(C, dy, gain) / (double)C) : 0.0f;
        float along_x = (float)(project(C, x, gain, mu, scale, dy) / (double)C);
        if (n->dgain) add_norm_sums(n, r, 0, C);
#pragma omp simd
        for (int64_t c = 0; c < C; c++) {
            float xhat = (x[c] - mu) * scale;
            dx[c] += scale * (dy[c] * gain[c] - along_one - xhat * along_x);
        }
    }
}

static void layernorm_sums(const zero_layernorm_grad_args *n, int64_t first, int64_t end)
{
    for (int64_t r = 0; r < n->rows; r++) add_norm_sums(n, r, first, end);
}

/* out = e^(x - most), while the next row is prefetched to L2: all passes of cross_entropy
 * then take 0.57 ns per logit instead of 0.66. */
static void exponentials(int64_t n, const float *x, float most, const float *next,
                         float *out)
{
    for (int64_t at = 0; at < n; at += STRIDE) {
        const int64_t end = at + stride_len(n, at);
        for (int64_t i = at; i < end; i += 16) __builtin_prefetch(next + i, 0, 2);
#pragma omp simd
        for (int64_t i = at; i < end; i++) out[i] = exponential(x[i] - most);
    }
}

static float cross_entropy(int64_t V, int64_t target, float dscale, float *logits)
{
    float scratch[CHUNK], most = largest(V, logits), wanted = logits[target];
    double total = 0.0;
    for (int64_t at = 0; at < V; at += CHUNK) {
        const int64_t len = chunk_len(V, at);
        float *exps = dscale != 0.0f ? logits + at : scratch;
        exponentials(len, logits + at, most, logits + V + at, exps);
        total += (double)sum_chunk(len, exps);
    }
    if (dscale != 0.0f) {
        float inverse = (float)((double)dscale / total);
#pragma omp simd
        for (int64_t j = 0; j < V; j++) logits[j] *= inverse;
        logits[target] -= dscale;
    }
    return (float)(zero_log(total) + (double)most - (double)wanted);
}

static float softmax_slice(int64_t n, int64_t stride, float *logits, float *most)
{
    double total = 0.0;
    *most = largest(n, logits);
    /* -infinity has no difference to itself; e^(-infinity - 0) is 0. */
    const float base = *most == -INFINITY ? 0.0f : *most;
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t len = chunk_len(n, at);
        float *x = logits + at;
        exponentials(len, x, base, x + stride, x);
        total += (double)sum_chunk(len, x);
    }
    return (float)total;
}

const zero_cpu_kernels ZERO_KERNELS = {
    .name = ZERO_KERNELS_NAME,
    .add = add,
    .multiply = multiply,
    .scale = scale,
    .dots = dots,
    .move = move,
    .add_branch = add_branch,
    .bias_gelu = bias_gelu,
    .bias_gelu_backward = bias_gelu_backward,
    .half_add_branch = half_add_branch,
    .half_bias_gelu = half_bias_gelu,
    .half_gelu_backward = half_gelu_backward,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .angles = angles,
    .turn = turn,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .layernorm_sums = layernorm_sums,
    .softmax = softmax,
    .softmax_again = softmax_again,
    .softmax_backward = softmax_backward,
    .add_rows = add_rows,
    .row_dots = row_dots,
    .cross_entropy = cross_entropy,
    .softmax_slice = softmax_slice,
    .adamw = adamw,
};
