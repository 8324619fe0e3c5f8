/* cpu_scores.h - attention's scores of a panel of queries, as its kernels see them. */
#pragma once

#include "zero/type.h"

#define ZERO_SCORE_ROWS 32 /* queries of a panel, at most */

/* Row r has first + r + 1 scores, and memory for len rounded up to 16, which kernels set to
 * zero past the diagonal. Rows are `stride` apart. */
typedef struct {
    int64_t rows, first, len, stride;
} zero_cpu_scores;

/* Pieces of n numbers, each of one row: x is read, out written. One of both is fp32. Rows
 * are strides apart. x_rows and out_rows count the rows that exist from the first on: those
 * past `rows` are prefetched, because they come next. */
typedef struct {
    int64_t rows, n;
    const void *x;
    zero_type x_type;
    int64_t x_stride, x_rows;
    void *out;
    zero_type out_type;
    int64_t out_stride, out_rows;
    float factor;
    const float *factors; /* [rows], in place of factor; or NULL */
} zero_cpu_pieces;
