/* cpu_halves.h - the hot loops on rows of 16 bits: included by cpu_kernels.c, which is
 * compiled once per instruction set, after GELU. Numbers are widened and rounded in
 * registers, a block at a time, so that loops over a block are those of fp32. */
#pragma once

#include "base/vector_lanes.h"

#define BLOCK 128 /* shorter blocks take longer: GELU of 32 1.2 times as long */

INLINE void widen_block(zero_type type, const void *x, int64_t at, float *out)
{
    for (int k = 0; k < BLOCK; k += WIDTH) *(floats *)(out + k) = load(type, x, at + k);
}

INLINE void round_block(zero_type type, const float *x, void *out, int64_t at)
{
    for (int k = 0; k < BLOCK; k += WIDTH)
        store(type, *(const floats *)(x + k), out, at + k, false);
}

/* Lines that a later block reads or writes. */
INLINE void fetch_block(const uint16_t *x, int64_t at)
{
    for (int k = 0; k < BLOCK; k += 32) __builtin_prefetch(x + at + AHEAD + k, 0, 3);
}

/* The last numbers of a row with zeros after them, as a block of their own. */
INLINE void copy_last(const void *from, size_t size, int64_t n, void *block)
{
    memset(block, 0, BLOCK * size);
    memcpy(block, from, (size_t)n * size);
}

INLINE void bias_gelu_block(zero_type type, bool is_exact, int64_t at, const float *bias,
                            void *x, void *y)
{
    float v[BLOCK];
    for (int k = 0; k < BLOCK; k += WIDTH) {
        const floats sum = load(type, x, at + k) + load(ZERO_FP32, bias, at + k);
        store(type, sum, x, at + k, false);
        *(floats *)(v + k) = rounded(type, sum);
    }
#pragma omp simd
    for (int k = 0; k < BLOCK; k++) v[k] = is_exact ? exact_gelu(v[k]) : gelu_of(v[k]);
    round_block(type, v, y, at);
}

INLINE void half_bias_gelu_as(zero_type type, bool is_exact, int64_t n, const float *bias,
                              uint16_t *x, uint16_t *y)
{
    uint16_t last_x[BLOCK], last_y[BLOCK];
    float last_bias[BLOCK];
    int64_t at = 0;
    for (; at + BLOCK <= n; at += BLOCK) {
        fetch_block(x, at);
        fetch_block(y, at);
        bias_gelu_block(type, is_exact, at, bias, x, y);
    }
    if (at == n) return;
    copy_last(x + at, sizeof *x, n - at, last_x);
    copy_last(bias + at, sizeof *bias, n - at, last_bias);
    bias_gelu_block(type, is_exact, 0, last_bias, last_x, last_y);
    zero_copy(x + at, last_x, n - at);
    zero_copy(y + at, last_y, n - at);
}

static void half_bias_gelu(zero_type type, bool is_exact, int64_t n, const float *bias,
                           void *x, void *y)
{
    if (type == ZERO_BF16 && is_exact)
        half_bias_gelu_as(ZERO_BF16, true, n, bias, x, y);
    else if (type == ZERO_BF16)
        half_bias_gelu_as(ZERO_BF16, false, n, bias, x, y);
    else
        half_bias_gelu_as(ZERO_FP16, is_exact, n, bias, x, y);
}

INLINE void gelu_slope_block(zero_type type, bool is_exact, int64_t at, const void *x,
                             const void *dy, void *dx, float *dbias)
{
    float v[BLOCK], d[BLOCK];
    widen_block(type, x, at, v);
    widen_block(type, dy, at, d);
#pragma omp simd
    for (int k = 0; k < BLOCK; k++)
        d[k] = d[k] * (is_exact ? exact_gelu_slope(v[k]) : gelu_slope(v[k]));
    for (int k = 0; k < BLOCK; k += WIDTH) {
        const floats slope = *(const floats *)(d + k);
        store(type, slope, dx, at + k, false);
        *(floats *)(dbias + at + k) += rounded(type, slope);
    }
}

INLINE void gelu_slopes_as(zero_type type, bool is_exact, int64_t n, const uint16_t *x,
                           const uint16_t *dy, uint16_t *dx, float *dbias)
{
    uint16_t last_x[BLOCK], last_d[BLOCK];
    float last_sum[BLOCK];
    int64_t at = 0;
    for (; at + BLOCK <= n; at += BLOCK) {
        fetch_block(x, at);
        fetch_block(dy, at);
        gelu_slope_block(type, is_exact, at, x, dy, dx, dbias);
    }
    if (at == n) return;
    copy_last(x + at, sizeof *x, n - at, last_x);
    copy_last(dy + at, sizeof *dy, n - at, last_d);
    copy_last(dbias + at, sizeof *dbias, n - at, last_sum);
    gelu_slope_block(type, is_exact, 0, last_x, last_d, last_d, last_sum);
    zero_copy(dx + at, last_d, n - at);
    zero_copy(dbias + at, last_sum, n - at);
}

static void half_gelu_backward(zero_type type, bool is_exact, int64_t n, const void *x,
                               const void *dy, void *dx, float *dbias)
{
    if (type == ZERO_BF16 && is_exact)
        gelu_slopes_as(ZERO_BF16, true, n, x, dy, dx, dbias);
    else if (type == ZERO_BF16)
        gelu_slopes_as(ZERO_BF16, false, n, x, dy, dx, dbias);
    else
        gelu_slopes_as(ZERO_FP16, is_exact, n, x, dy, dx, dbias);
}

INLINE void add_branch_block(zero_type type, int64_t at, const float *bias,
                             const void *residual, const void *in, void *out)
{
    for (int k = 0; k < BLOCK; k += WIDTH)
        store(type,
              load(type, residual, at + k) +
                  (load(type, in, at + k) + load(ZERO_FP32, bias, at + k)),
              out, at + k, false);
}

INLINE void add_branch_as(zero_type type, int64_t n, const float *bias,
                          const uint16_t *residual, const uint16_t *in, uint16_t *out)
{
    uint16_t last[BLOCK], last_in[BLOCK];
    float last_bias[BLOCK];
    int64_t at = 0;
    for (; at + BLOCK <= n; at += BLOCK)
        add_branch_block(type, at, bias, residual, in, out);
    if (at == n) return;
    copy_last(residual + at, sizeof *residual, n - at, last);
    copy_last(in + at, sizeof *in, n - at, last_in);
    copy_last(bias + at, sizeof *bias, n - at, last_bias);
    add_branch_block(type, 0, last_bias, last, last_in, last_in);
    zero_copy(out + at, last_in, n - at);
}

static void half_add_branch(zero_type type, int64_t n, const float *bias,
                            const void *residual, const void *in, void *out)
{
    if (type == ZERO_BF16)
        add_branch_as(ZERO_BF16, n, bias, residual, in, out);
    else
        add_branch_as(ZERO_FP16, n, bias, residual, in, out);
}
