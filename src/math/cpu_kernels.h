/* cpu_kernels.h - the inner loops of the cpu backend, once per instruction set.
 *
 * cpu_kernels.c is compiled several times into tables of this type. All tables give the
 * same bits: loops over elements do the same to each element, sums run in 16 lanes whatever
 * the registers' width, and nothing is contracted to fused multiply-adds. NaN and infinity
 * pass through as in plain arithmetic. Outputs may be inputs unless said. */
#pragma once

#include <stdint.h>

#include "math/backend.h"

typedef struct {
    const char *name; /* "native", "x86-64-v3", ... */
    void (*add)(int64_t n, const float *a, const float *b, float *out);
    void (*multiply)(int64_t n, const float *a, const float *b, float *out);
    double (*dot)(int64_t n, const float *a, const float *b);
    void (*gelu)(int64_t n, const float *x, float *y);
    void (*gelu_backward)(int64_t n, const float *x, const float *dy, float *dx);
    void (*layernorm)(int64_t rows, int64_t C, const float *x, const float *gain,
                      const float *bias, float *y, float *mean, float *rstd);
    /* dx, dgain and dbias are added to and overlap no input */
    void (*layernorm_backward)(int64_t rows, int64_t C, const float *x, const float *gain,
                               const float *mean, const float *rstd, const float *dy,
                               float *dx, float *dgain, float *dbias);
    /* Of softmax, 1 <= n <= len; rows have room for len rounded up to 16, and become zero from
     * n on. row[0..n) = exp(row - its largest); returns 1 / the sum of that, and lse = the log
     * of the sum of exp(row). */
    float (*softmax)(int64_t n, int64_t len, float *row, float *lse);
    /* row[0..n) = the probabilities, given that logarithm. */
    void (*softmax_again)(int64_t n, int64_t len, float lse, float *row);
    /* dp[0..n) = p * (dp - mean): p the probabilities, dp their gradient, mean = the sum of
     * p * dp. */
    void (*softmax_backward)(int64_t n, int64_t len, float mean, const float *p, float *dp);
    /* One row of the table's cross_entropy; returns the loss. */
    float (*cross_entropy)(int64_t V, int64_t target, float dscale, float *logits);
    void (*adamw)(const zero_adamw *h, int64_t n, const float *grad, float *param, float *m,
                  float *v);
} zero_cpu_kernels;

#define ZERO_CPU_VARIANTS 3 /* at most */

/* Fills `list` with the tables that this build has and this machine can run, best first,
 * and returns how many; at least 1. */
int zero_cpu_kernels_list(const zero_cpu_kernels *list[ZERO_CPU_VARIANTS]);
