/* cpu_row.h - one row, or a part of it, for the cpu backend's operations on rows of any
 * type.
 *
 * Rows of fp32 go to the kernels as they are. Those of 16 bits are widened a tile at a time
 * to where L1 keeps it, computed by the same kernels and rounded. A pass over memory then
 * moves half the bytes, and the passes over the tile cost little beside it. Outputs may be
 * inputs. */
#pragma once

#include "math/cpu_state.h"

/* Rows between two polls. */
int64_t zero_row_piece(int64_t cols);

/* A whole bias or gain as floats: in place, or in the scratch from `at` on. NULL stays
 * NULL. */
const float *zero_row_weights(const zero_math *math, zero_type type, int64_t n,
                              const void *x, int64_t at);

/* Both prefetch the lines that follow x, which are likely to be next. */
void zero_row_widen(zero_type type, int64_t n, const void *x, float *out);
void zero_row_round(zero_type type, int64_t n, const float *x, void *out);

/* x += bias */
void zero_row_add_bias(const zero_math *math, zero_type type, int64_t n, const float *bias,
                       void *x);
/* sum += x */
void zero_row_sum(const zero_math *math, zero_type type, int64_t n, const void *x,
                  float *sum);

/* zero_swiglu of one row; backward turns d into dz. */
void zero_row_swiglu(const zero_math *math, zero_type type, int64_t n, const void *z,
                     const void *u, void *y);
void zero_row_swiglu_backward(const zero_math *math, zero_type type, int64_t n,
                              const void *z, const void *u, void *d, void *du);

/* A row's masks of a dropout: elements from `first` on. */
typedef struct {
    zero_rng stream;
    float p; /* 0: no dropout */
    int64_t first;
} zero_row_mask;

/* y = x * mask */
void zero_row_drop(const zero_math *math, zero_type type, const zero_row_mask *mask,
                   int64_t n, const void *x, void *y);
/* out = residual + (in + bias) * mask; residual must not be out, bias may be NULL */
void zero_row_add_branch(const zero_math *math, zero_type type, const zero_row_mask *mask,
                         int64_t n, const float *bias, const void *residual, const void *in,
                         void *out);
