/* cpu_scores.h - attention's scores of a panel of queries, as its kernels see them. */
#pragma once

#include <stdint.h>

#define ZERO_SCORE_ROWS 32 /* queries of a panel, at most */

/* Row r has first + r + 1 scores, and memory for len rounded up to 16, which kernels set to zero
 * past the diagonal. Rows are `stride` apart. */
typedef struct {
    int64_t rows, first, len, stride;
} zero_cpu_scores;
