/* naive.h - the naive backend's operations that are not in naive.c. */
#pragma once

#include "math/backend.h"

/* Element i of a typed array, widened. */
float zero_naive_get(zero_type type, const void *x, int64_t i);
/* x[i] = value, rounded to the type. */
void zero_naive_set(zero_type type, void *x, int64_t i, float value);

int64_t zero_naive_attention_workspace(const zero_attention *a);
void zero_naive_attention(const zero_math *math, const zero_attention *a);
void zero_naive_attention_backward(const zero_math *math, const zero_attention *a);

void zero_naive_remember(const zero_math *math, const zero_cached *a);
void zero_naive_recall(const zero_math *math, const zero_cached *a);

void zero_naive_turn(const zero_math *math, const zero_turn *t);
void zero_naive_turn_backward(const zero_math *math, const zero_turn *t);

void zero_naive_softmax_slices(const zero_math *math, const zero_softmax *s);
void zero_naive_softmax_loss(const zero_math *math, const zero_softmax *s);

void zero_naive_clear(const zero_math *math, int64_t n, float *x);
void zero_naive_adamw(const zero_math *math, const zero_adamw *h,
                      const zero_adamw_arrays *a);
void zero_naive_sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                            double *sum);
void zero_naive_exact_squares(const zero_math *math, zero_type type, int64_t n,
                              const void *x, zero_exact *sum);
void zero_naive_round(const zero_math *math, zero_type type, int64_t n, const float *in,
                      void *out);
void zero_naive_accumulate(const zero_math *math, zero_type type, int64_t n,
                           const float *sum, const float *leaf, float *out);
