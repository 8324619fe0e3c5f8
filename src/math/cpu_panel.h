/* cpu_panel.h - small products in fp32, whose factors lie in cache: the heart of packed products
 * in fp32, and of attention.
 *
 * A *panel* is `cols` lanes of b for all k: [k][cols]; panels follow each other. a is read where
 * it is, by two strides. Sums run along k in order, by fused multiply-adds where the CPU has
 * them. */
#pragma once

#include "math/cpu_packed.h"

typedef struct {
    zero_packed_kernels packed; /* pack_b makes panels; pack_a: [k][rows] */
    bool beats_blas;            /* in whole products; bench/README.md */
    /* c[rows, cols] = a b, or +=; element (i, p) of a at a[i * a_row + p * a_k]; b is one panel */
    void (*multiply)(int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b,
                     bool add, float *c, int64_t ldc);
    /* the same of the left half of the panel and of c; cols stay as they are */
    void (*multiply_left)(int64_t k, const float *a, int64_t a_row, int64_t a_k,
                          const float *b, bool add, float *c, int64_t ldc);
} zero_panel_kernels;

/* The largest squares; those of all kernels divide them. */
#define ZERO_PANEL_ROWS 12
#define ZERO_PANEL_COLS 32

/* The kernels of this build that this CPU runs, widest first: number i, or NULL past the end. */
const zero_panel_kernels *zero_panels_at(int i);
