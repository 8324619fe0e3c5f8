/* cpu_flat.h - the cpu backend's operations on flat ranges, as the table has them. */
#pragma once

#include "math/backend.h"

void zero_cpu_clear(const zero_math *math, int64_t n, float *x);
void zero_cpu_adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a);
void zero_cpu_sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                          double *sum);
void zero_cpu_exact_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                            zero_exact *sum);
void zero_cpu_round(const zero_math *math, zero_type type, int64_t n, const float *in,
                    void *out);
void zero_cpu_accumulate(const zero_math *math, zero_type type, int64_t n, const float *sum,
                         const float *leaf, float *out);
