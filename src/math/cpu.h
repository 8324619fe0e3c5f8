/* cpu.h - the operations of the cpu backend that have a file of their own, as its table
 * (cpu.c) has them. */
#pragma once

#include "math/backend.h"

/* cpu_gemm.c: packed (cpu_packed.h), or by BLAS. Polls between blocks, which depend on m, n
 * and k alone. */
void zero_cpu_gemm(const zero_math *math, const zero_gemm *g);

/* cpu_norm.c: layer norm. */
void zero_cpu_layernorm(const zero_math *math, const zero_layernorm_args *n);
void zero_cpu_layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n);

/* cpu_turn.c: rotary positions. */
void zero_cpu_turn(const zero_math *math, const zero_turn *t);
void zero_cpu_turn_backward(const zero_math *math, const zero_turn *t);

/* cpu_attention.c and cpu_attention_backward.c: polls once per block of queries. */
int64_t zero_cpu_attention_workspace(const zero_attention *a);
void zero_cpu_attention(const zero_math *math, const zero_attention *a);
void zero_cpu_attention_backward(const zero_math *math, const zero_attention *a);

/* cpu_cached.c */
void zero_cpu_remember(const zero_math *math, const zero_cached *a);
void zero_cpu_recall(const zero_math *math, const zero_cached *a);

/* cpu_flat.c: flat ranges. */
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

/* cpu_loss.c: over a whole vocabulary, and in slices. */
void zero_cpu_cross_entropy(const zero_math *math, const zero_cross_entropy *e);
void zero_cpu_softmax_slices(const zero_math *math, const zero_softmax *s);
void zero_cpu_softmax_loss(const zero_math *math, const zero_softmax *s);
