#include "math/cpu_kernels.h"

#include <math.h>
#include <string.h>

/* This file is compiled once per instruction set; the build gives each its table's name. */
extern const zero_cpu_kernels ZERO_KERNELS;

#define LANES 16
#define LOG_2 0.69314718055994531 /* the natural logarithm of 2 */
#define CHUNK 1024 /* elements whose terms are computed, then summed: they stay in L1 */

typedef float lanes
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* The sum of at most CHUNK numbers: lane l adds elements l, l + 16, ..., then the lanes are
 * folded in halves. The order is written down, so every vector width gives the same bits.
 */
static float sum_chunk(int64_t n, const float *x)
{
    lanes s = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) s += *(const lanes *)(x + i);
    for (int l = 0; i < n; i++, l++) s[l] += x[i];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) s[l] += s[l + half];
    return s[0];
}

static int64_t chunk_len(int64_t n, int64_t at)
{
    return n - at < CHUNK ? n - at : CHUNK;
}

/* Chunks are added in double: a row of 50 257 exponentials is then as exact as a short one.
 */
static double sum(int64_t n, const float *x)
{
    double total = 0.0;
    for (int64_t at = 0; at < n; at += CHUNK)
        total += (double)sum_chunk(chunk_len(n, at), x + at);
    return total;
}

static double dot(int64_t n, const float *a, const float *b)
{
    float term[CHUNK];
    double total = 0.0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t len = chunk_len(n, at);
#pragma omp simd
        for (int64_t i = 0; i < len; i++) term[i] = a[at + i] * b[at + i];
        total += (double)sum_chunk(len, term);
    }
    return total;
}

/* NaN is never the largest; it spoils the sum of exponentials instead. */
static float largest(int64_t n, const float *x)
{
    float most[LANES];
    for (int l = 0; l < LANES; l++) most[l] = -INFINITY;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
    for (; i < n; i++) most[0] = x[i] > most[0] ? x[i] : most[0];
    for (int l = 1; l < LANES; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    return most[0];
}

/* e^x with a relative error of at most 8.1e-8; 0 where that is below the normal numbers,
 * infinity from 88.37 on. x = n ln 2 + r, |r| <= ln(2)/2; e^r by a polynomial (Cephes
 * expf), 2^n by its exponent bits. Adding 1.5 * 2^23 rounds to the nearest integer and
 * leaves it in the low bits: rintf would be a function call on plain x86-64. */
static inline float exponential(float x)
{
    const float magic = 12582912.0f;
    float shifted = x * 1.44269504f + magic, n = shifted - magic;
    float r = x - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    float e_to_r = p * (r * r) + r + 1.0f;

    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (127u << 23);
    memcpy(&power, &bits, sizeof power);
    float y = e_to_r * power;
    y = x < -87.33f ? 0.0f : y;
    return x > 88.37f ? INFINITY : y;
}

static void add(int64_t n, const float *a, const float *b, float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

static void multiply(int64_t n, const float *a, const float *b, float *out)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) out[i] = a[i] * b[i];
}

/* GELU's 0.5 (1 + tanh u) is the logistic function of 2u, u = sqrt(2/pi) (x + 0.044715
 * x^3). */
#define TWO_U_X1 1.5957691216f   /* 2 sqrt(2/pi) */
#define TWO_U_X3 0.071354816273f /* 2 sqrt(2/pi) 0.044715 */

static void gelu(int64_t n, const float *x, float *y)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float two_u = x[i] * (TWO_U_X1 + TWO_U_X3 * x[i] * x[i]);
        y[i] = x[i] / (1.0f + exponential(-two_u));
    }
}

static void gelu_backward(int64_t n, const float *x, const float *dy, float *dx)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        /* Beyond 10 the derivative is 0 or 1 in floats, but x * x would overflow early. */
        float z = x[i] < -10.0f ? -10.0f : x[i];
        z = z > 10.0f ? 10.0f : z;
        float s = 1.0f / (1.0f + exponential(-z * (TWO_U_X1 + TWO_U_X3 * z * z)));
        float slope = s + z * s * (1.0f - s) * (TWO_U_X1 + 3.0f * TWO_U_X3 * z * z);
        dx[i] = dy[i] * slope;
    }
}

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

static void layernorm(int64_t rows, int64_t C, const float *x, const float *gain,
                      const float *bias, float *y, float *mean, float *rstd)
{
    for (int64_t r = 0; r < rows; r++, x += C, y += C) {
        float mu = (float)(sum(C, x) / (double)C);
        double variance = sum_square_deviations(C, x, mu) / (double)C;
        float scale = (float)(1.0 / sqrt(variance + (double)ZERO_LAYERNORM_EPS));
#pragma omp simd
        for (int64_t c = 0; c < C; c++) y[c] = (x[c] - mu) * scale * gain[c] + bias[c];
        mean[r] = mu;
        rstd[r] = scale;
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

/* With g = dy gain:  dx += rstd (g - mean(g) - xhat mean(g xhat)). */
static void layernorm_backward(int64_t rows, int64_t C, const float *x, const float *gain,
                               const float *mean, const float *rstd, const float *dy,
                               float *dx, float *dgain, float *dbias)
{
    for (int64_t r = 0; r < rows; r++, x += C, dy += C, dx += C) {
        float mu = mean[r], scale = rstd[r];
        float along_one = (float)(dot(C, dy, gain) / (double)C);
        float along_x = (float)(project(C, x, gain, mu, scale, dy) / (double)C);
#pragma omp simd
        for (int64_t c = 0; c < C; c++) {
            float xhat = (x[c] - mu) * scale;
            dgain[c] += dy[c] * xhat;
            dbias[c] += dy[c];
            dx[c] += scale * (dy[c] * gain[c] - along_one - xhat * along_x);
        }
    }
}

/* 2^x for x <= 0, with a relative error of at most 1.1e-7; 0 where that is below the normal
 * numbers. As above; the polynomial is the minimax one with 2^0 = 1. */
static inline float power_of_two(float x)
{
    const float magic = 12582912.0f;
    float shifted = x + magic, r = x - (shifted - magic);
    float p = 1.5594678e-4f;
    p = p * r + 1.3406643e-3f;
    p = p * r + 9.6176928e-3f;
    p = p * r + 5.5503104e-2f;
    p = p * r + 2.4022653e-1f;
    p = p * r + 6.9314724e-1f;
    p = p * r + 1.0f;

    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (127u << 23);
    memcpy(&power, &bits, sizeof power);
    return x < -126.0f ? 0.0f : p * power;
}

/* The lanes of a panel's rows, all at once: to fold one waits for itself at each step. */
typedef float panel_lanes[ZERO_CPU_PANEL][LANES];

static inline void add_half(int64_t rows, int half, panel_lanes s)
{
    for (int64_t r = 0; r < rows; r++)
        for (int l = 0; l < half; l++) s[r][l] += s[r][l + half];
}

static void fold_sums(int64_t rows, panel_lanes s)
{
    add_half(rows, 8, s);
    add_half(rows, 4, s);
    add_half(rows, 2, s);
    add_half(rows, 1, s);
}

static inline void larger_half(int64_t rows, int half, panel_lanes s)
{
    for (int64_t r = 0; r < rows; r++)
        for (int l = 0; l < half; l++)
            s[r][l] = s[r][l + half] > s[r][l] ? s[r][l + half] : s[r][l];
}

static void fold_largest(int64_t rows, panel_lanes s)
{
    larger_half(rows, 8, s);
    larger_half(rows, 4, s);
    larger_half(rows, 2, s);
    larger_half(rows, 1, s);
}

/* Sets what lies right of the diagonal, in whole lanes; returns where these end. */
static int64_t fill_above(const zero_cpu_panel *t, float value, float *x)
{
    const int64_t end = (t->len + LANES - 1) / LANES * LANES;
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const int64_t n = t->first + r + 1;
        for (int64_t j = n / LANES * LANES; j < end; j += LANES) {
            const int kept = j < n ? (int)(n - j) : 0;
#pragma omp simd
            for (int l = 0; l < LANES; l++) x[j + l] = l < kept ? x[j + l] : value;
        }
    }
    return end;
}

/* NaN is never the largest. */
static void largest_of_rows(const zero_cpu_panel *t, int64_t end, const float *x,
                            panel_lanes most)
{
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        float a[LANES];
        for (int l = 0; l < LANES; l++) a[l] = -INFINITY;
        for (int64_t j = 0; j < end; j += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) a[l] = x[j + l] > a[l] ? x[j + l] : a[l];
        memcpy(most[r], a, sizeof a);
    }
    fold_largest(t->rows, most);
}

/* x = 2^(x - most); total += the sums of x[at..end), which is at most one CHUNK. */
static void powers_of_rows(const zero_cpu_panel *t, int64_t at, int64_t end,
                           panel_lanes most, float *x, double *total)
{
    panel_lanes sums;
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const float least = most[r][0];
        float s[LANES] = {0};
        for (int64_t j = at; j < end; j += LANES)
            for (int l = 0; l < LANES; l++) {
                x[j + l] = power_of_two(x[j + l] - least);
                s[l] += x[j + l];
            }
        memcpy(sums[r], s, sizeof s);
    }
    fold_sums(t->rows, sums);
    for (int64_t r = 0; r < t->rows; r++) total[r] += (double)sums[r][0];
}

static void softmax(const zero_cpu_panel *t, float *x, float *lse, float *over_sum)
{
    panel_lanes most;
    double total[ZERO_CPU_PANEL] = {0};
    const int64_t end = fill_above(t, -INFINITY, x); /* 2 to that power is 0 */
    largest_of_rows(t, end, x, most);
    for (int64_t at = 0; at < end; at += CHUNK)
        powers_of_rows(t, at, at + chunk_len(end, at), most, x, total);
    for (int64_t r = 0; r < t->rows; r++) {
        lse[r] = (float)((double)most[r][0] * LOG_2 + log(total[r]));
        over_sum[r] = (float)(1.0 / total[r]);
    }
}

static void softmax_again(const zero_cpu_panel *t, const float *lse, float *x)
{
    const int64_t end = fill_above(t, -INFINITY, x);
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const float log2_of_sum = (float)((double)lse[r] / LOG_2);
#pragma omp simd
        for (int64_t j = 0; j < end; j++) x[j] = power_of_two(x[j] - log2_of_sum);
    }
}

static void softmax_backward(const zero_cpu_panel *t, const float *mean, const float *p,
                             float *dp)
{
    const int64_t end = fill_above(t, 0.0f, dp);
    for (int64_t r = 0; r < t->rows; r++, p += t->stride, dp += t->stride) {
        const float m = mean[r];
#pragma omp simd
        for (int64_t j = 0; j < end; j++) dp[j] = p[j] * (dp[j] - m);
    }
}

static void dots(int64_t rows, int64_t n, const float *a, int64_t lda, const float *b,
                 int64_t ldb, float *out)
{
    panel_lanes sums;
    for (int64_t r = 0; r < rows; r++, a += lda, b += ldb) {
        float s[LANES] = {0};
        int64_t c = 0;
        for (; c + LANES <= n; c += LANES)
            for (int l = 0; l < LANES; l++) s[l] += a[c + l] * b[c + l];
        for (int l = 0; c < n; c++, l++) s[l] += a[c] * b[c];
        memcpy(sums[r], s, sizeof s);
    }
    fold_sums(rows, sums);
    for (int64_t r = 0; r < rows; r++) out[r] = sums[r][0];
}

static float cross_entropy(int64_t V, int64_t target, float dscale, float *logits)
{
    float scratch[CHUNK], most = largest(V, logits), wanted = logits[target];
    double total = 0.0;
    for (int64_t at = 0; at < V; at += CHUNK) {
        int64_t len = chunk_len(V, at);
        float *exps = dscale != 0.0f ? logits + at : scratch;
#pragma omp simd
        for (int64_t j = 0; j < len; j++) exps[j] = exponential(logits[at + j] - most);
        total += (double)sum_chunk(len, exps);
    }
    if (dscale != 0.0f) {
        float inverse = (float)((double)dscale / total);
#pragma omp simd
        for (int64_t j = 0; j < V; j++) logits[j] *= inverse;
        logits[target] -= dscale;
    }
    return (float)(log(total) + (double)most - (double)wanted);
}

static void adamw(const zero_adamw *h, int64_t n, const float *grad, float *param, float *m,
                  float *v)
{
    const float unbias1 = (float)(1.0 / (1.0 - pow((double)h->beta1, (double)h->step)));
    const float unbias2 = (float)(1.0 / (1.0 - pow((double)h->beta2, (double)h->step)));
    const float beta1 = h->beta1, beta2 = h->beta2, rest1 = 1.0f - beta1,
                rest2 = 1.0f - beta2;
    const float lr = h->lr, decay = h->lr * h->weight_decay, eps = h->eps;
    const float grad_scale = h->grad_scale;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) { /* Loshchilov & Hutter 2019, algorithm 2 */
        float g = grad[i] * grad_scale;
        m[i] = beta1 * m[i] + rest1 * g;     /* line 7 */
        v[i] = beta2 * v[i] + rest2 * g * g; /* line 8 */
        float step = lr * (m[i] * unbias1) / (sqrtf(v[i] * unbias2) + eps);
        param[i] = param[i] - decay * param[i] - step; /* line 12 */
    }
}

const zero_cpu_kernels ZERO_KERNELS = {
    .name = ZERO_KERNELS_NAME,
    .add = add,
    .multiply = multiply,
    .dots = dots,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .softmax = softmax,
    .softmax_again = softmax_again,
    .softmax_backward = softmax_backward,
    .cross_entropy = cross_entropy,
    .adamw = adamw,
};
