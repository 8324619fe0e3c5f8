/* cpu_panel.h - products in fp32 of panels that lie in cache: the heart of packed products
 * in fp32, and of attention.
 *
 * A panel of b is [k][cols]; panels follow each other. a is read in place, by two strides.
 * Sums run along k in order, by fused multiply-adds where the CPU has them. */
#pragma once

#include "math/cpu_packed.h"

typedef struct {
    zero_packed_kernels packed; /* a panel of a is [k][rows] */
    bool beats_blas;            /* in whole products; bench/results */
    /* A tile: c[rows, cols] = a b, or +=; element (i, p) of a at a[i * a_row + p * a_k]. */
    void (*multiply)(int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b,
                     bool add, float *c, int64_t ldc);
    /* The left half of the tile, by the left half of the panel; cols stay as they are. */
    void (*multiply_left)(int64_t k, const float *a, int64_t a_row, int64_t a_k,
                          const float *b, bool add, float *c, int64_t ldc);
    /* The tile's first `few` rows; the others stay as they are. */
    int few;
    void (*multiply_few)(int64_t k, const float *a, int64_t a_row, int64_t a_k,
                         const float *b, bool add, float *c, int64_t ldc);
    /* The sum of x[n], in any order; n is a multiple of ZERO_PANEL_READ. */
    float (*read)(int64_t n, const float *x);
} zero_panel_kernels;

#define ZERO_PANEL_READ 128

/* The largest tiles; those of all kernels divide them. */
#define ZERO_PANEL_ROWS 12
#define ZERO_PANEL_COLS 32

/* The kernels of this build that this CPU runs, widest first: number i, or NULL past the
 * end. */
const zero_panel_kernels *zero_panels_at(int i);
