/* calls.h - the arithmetic of the fake device, as its table has it: each call translates its
 * pointers and is recorded. */
#pragma once

#include "math/backend.h"

void zero_fake_clear(const zero_math *math, int64_t n, float *x);
void zero_fake_gemm(const zero_math *math, const zero_gemm *g);
void zero_fake_add_bias(const zero_math *math, const zero_bias *b);
void zero_fake_bias_backward(const zero_math *math, const zero_bias_grad *b);
void zero_fake_add_branch(const zero_math *math, const zero_branch *b);
void zero_fake_dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                       int64_t B, int64_t n, const void *x, void *y);
void zero_fake_bias_gelu(const zero_math *math, const zero_bias *b);
void zero_fake_bias_gelu_backward(const zero_math *math, const zero_bias_grad *b);
void zero_fake_layernorm(const zero_math *math, const zero_layernorm_args *n);
void zero_fake_layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n);
void zero_fake_swiglu(const zero_math *math, const zero_swiglu *s);
void zero_fake_swiglu_backward(const zero_math *math, const zero_swiglu *s);
void zero_fake_turn(const zero_math *math, const zero_turn *t);
void zero_fake_turn_backward(const zero_math *math, const zero_turn *t);
void zero_fake_attention(const zero_math *math, const zero_attention *a);
void zero_fake_attention_backward(const zero_math *math, const zero_attention *a);
void zero_fake_remember(const zero_math *math, const zero_cached *a);
void zero_fake_recall(const zero_math *math, const zero_cached *a);
void zero_fake_embedding(const zero_math *math, const zero_embedding *e);
void zero_fake_embedding_backward(const zero_math *math, const zero_embedding_grad *e);
void zero_fake_cross_entropy(const zero_math *math, const zero_cross_entropy *e);
void zero_fake_adamw(const zero_math *math, const zero_adamw *h,
                     const zero_adamw_arrays *a);
void zero_fake_sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                           double *sum);
void zero_fake_round(const zero_math *math, zero_type type, int64_t n, const float *in,
                     void *out);
void zero_fake_accumulate(const zero_math *math, zero_type type, int64_t n,
                          const float *sum, const float *leaf, float *out);
