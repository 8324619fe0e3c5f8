/* cpu_kernels.h - the inner loops of the cpu backend, once per instruction set.
 *
 * cpu_kernels.c is compiled several times into tables of this type. All tables give the
 * same bits: loops do the same to each element; sums have 32 partial sums, those of
 * attention 16, whatever the registers' width; and nothing is contracted to fused
 * multiply-adds. NaN and infinity pass through as in plain arithmetic. Outputs may be
 * inputs unless said. */
#pragma once

#include "math/backend.h"
#include "math/cpu_scores.h"

/* Few rows, x, and a matrix b[rows,n], of which each row is read once. Strides are in
 * elements, from row to row.
 *
 * With a `room` of zero_rows_room() floats add_rows() widens b into it first, once for all
 * rows of x: that pays from about ZERO_ROWS_MANY of them. */
typedef struct {
    int64_t m, rows, n;
    const float *x;
    int64_t x_stride;
    const void *b;
    int64_t stride;
    float *out;
    int64_t out_stride;
    float *room; /* NULL: none */
} zero_rows;

#define ZERO_ROWS_MANY 5

/* Floats of room for b[rows,n]. */
static inline int64_t zero_rows_room(int64_t rows, int64_t n)
{
    return rows * zero_round_up(n, 64);
}

typedef struct {
    const char *name; /* "native", "x86-64-v3", ... */
    void (*add)(int64_t n, const float *a, const float *b, float *out);
    void (*multiply)(int64_t n, const float *a, const float *b, float *out);
    void (*scale)(int64_t n, float factor, const float *x, float *out);
    /* out = residual + (in + bias) */
    void (*add_branch)(int64_t n, const float *bias, const float *residual, const float *in,
                       float *out);
    /* One row; y must not be x. */
    void (*bias_gelu)(bool is_exact, int64_t n, const float *bias, float *x, float *y);
    /* One row; dbias is added to. */
    void (*bias_gelu_backward)(bool is_exact, int64_t n, const float *x, const float *dy,
                               float *dx, float *dbias);
    /* The same three on one row of 16 bits; GELU is of x, and dbias the sum of dx, as they
     * are stored. */
    void (*half_add_branch)(zero_type type, int64_t n, const float *bias,
                            const void *residual, const void *in, void *out);
    void (*half_bias_gelu)(zero_type type, bool is_exact, int64_t n, const float *bias,
                           void *x, void *y);
    void (*half_gelu_backward)(zero_type type, bool is_exact, int64_t n, const void *x,
                               const void *dy, void *dx, float *dbias);
    /* All arrays in fp32, also below. */
    void (*swiglu)(int64_t n, const float *z, const float *u, float *y);
    /* d becomes dz, given dy. */
    void (*swiglu_backward)(int64_t n, const float *z, const float *u, float *d, float *du);
    /* cosine and sine of t * frequency[pairs], as zero_turn says; and a head that turns. */
    void (*angles)(int64_t pairs, float t, const float *frequency, float *cosine,
                   float *sine);
    void (*turn)(int64_t pairs, const float *cosine, const float *sine, float *x);
    void (*layernorm)(const zero_layernorm_args *n);
    /* dgain and dbias are added to, unless they are NULL, and outputs overlap no input. */
    void (*layernorm_backward)(const zero_layernorm_grad_args *n);
    /* What it adds to channels [first, end) of dgain and dbias; the rest stays. */
    void (*layernorm_sums)(const zero_layernorm_grad_args *n, int64_t first, int64_t end);
    /* x = 2^(x - its row's largest); lse[r] = the natural logarithm of the row's sum of 2^x
     * before, over_sum[r] = 1 / the row's sum after. */
    void (*softmax)(const zero_cpu_scores *t, float *x, float *lse, float *over_sum);
    /* x = the probabilities, given lse as softmax() left it. */
    void (*softmax_again)(const zero_cpu_scores *t, const float *lse, float *x);
    /* dp = p * (dp - mean[r]): p the probabilities, dp their gradient, mean the sums of p *
     * dp */
    void (*softmax_backward)(const zero_cpu_scores *t, const float *mean, const float *p,
                             float *dp);
    /* out[r] = the sum over n of a[r, n] * x[r, n], x as t says; rows <= ZERO_SCORE_ROWS */
    void (*dots)(const zero_cpu_pieces *t, const float *a, int64_t lda, float *out);
    /* out = factor * x */
    void (*move)(const zero_cpu_pieces *t);
    /* out[m,n] += x[m,rows] b, added in the order of b's rows. */
    void (*add_rows)(zero_type type, const zero_rows *t);
    /* out[m,rows] = x[m,n] b' */
    void (*row_dots)(zero_type type, const zero_rows *t);
    /* One row of the table's cross_entropy; returns the loss. */
    float (*cross_entropy)(int64_t V, int64_t target, float dscale, float *logits);
    /* One row of one slice of the table's softmax_slices: sets *most and returns the sum.
     * Rows are `stride` apart; the next is prefetched. */
    float (*softmax_slice)(int64_t n, int64_t stride, float *logits, float *most);
    /* The table's adamw, for any type. */
    void (*adamw)(const zero_adamw *h, const zero_adamw_arrays *a);
} zero_cpu_kernels;

/* The kernels of this build that this CPU runs, best first: number i, or NULL past the
 * end. */
const zero_cpu_kernels *zero_cpu_kernels_at(int i);
