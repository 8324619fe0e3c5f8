/* cpu_kernels.h - the inner loops of the cpu backend, once per instruction set.
 *
 * cpu_kernels.c is compiled several times into tables of this type. All tables give the
 * same bits: loops over elements do the same to each element, sums run in 32 lanes whatever
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
    void (*add_branch)(int64_t n, const float *bias, const float *around, float *x);
    /* One row; y may not be x. */
    void (*bias_gelu)(int64_t n, const float *bias, float *x, float *y);
    /* One row; dbias is added to. */
    void (*bias_gelu_backward)(int64_t n, const float *x, const float *dy, float *dx,
                               float *dbias);
    void (*layernorm)(int64_t rows, int64_t C, const float *x, const float *gain,
                      const float *bias, float *y, float *mean, float *rstd);
    /* dx, dgain and dbias are added to and overlap no input */
    void (*layernorm_backward)(int64_t rows, int64_t C, const float *x, const float *gain,
                               const float *mean, const float *rstd, const float *dy,
                               float *dx, float *dgain, float *dbias);
    /* row[0..n) = softmax(scale * row), row[n..len) = 0; returns the log of the sum of
     * exponentials. 1 <= n <= len. */
    float (*softmax)(int64_t n, int64_t len, float scale, float *row);
    /* The same probabilities, given that logarithm. */
    void (*softmax_again)(int64_t n, int64_t len, float scale, float lse, float *row);
    /* dp = scale * (dropped * dp - p * mean): p the probabilities, dropped = p after
     * dropout, dp the gradient of dropped, mean = the sum of dropped * dp. */
    void (*softmax_backward)(int64_t n, float scale, float mean, const float *p,
                             const float *dropped, float *dp);
    /* One row of the table's cross_entropy; returns the loss. */
    float (*cross_entropy)(int64_t V, int64_t target, float dscale, float *logits);
    /* The table's, of any type. */
    void (*adamw)(const zero_adamw *h, int64_t n, zero_type type, const void *grad,
                  float *master, float *m, float *v, void *param);
} zero_cpu_kernels;

#define ZERO_CPU_VARIANTS 3 /* at most */

/* Fills `list` with the tables that this build has and this machine can run, best first,
 * and returns how many; at least 1. */
int zero_cpu_kernels_list(const zero_cpu_kernels *list[ZERO_CPU_VARIANTS]);
