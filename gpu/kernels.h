/* kernels.h - the launchers of the .cu files. They queue work on a stream and return.
 *
 * Arguments, shapes and meaning are those of zero_backend (src/math/backend.h), whose functions
 * these become: pointers are the device's. No launcher allocates, waits or reads device memory.
 * Launch errors are left for cudaGetLastError(). Sums have a fixed order, so two runs have equal
 * bits; there are no atomics on floats.
 *
 * Arrays are aligned to their elements at least; aligned to 16 bytes they are faster. Tables of no
 * rows, or of no columns, are fine.
 *
 * Exact ones have the CPU's bits, NaN's payloads excepted; the others a tolerance. exact.cu is
 * compiled without contraction (-fmad=false). */
#pragma once

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "math/backend.h"

/* Device memory for partial sums, any content. A sum over rows or blocks is made in stages: how many
 * parts depends on shapes and on `bytes` alone, never on the GPU. bytes >= 64 KiB and >= 8 bytes
 * per column. */
typedef struct {
    void *memory;
    size_t bytes;
} zero_cuda_room;

/* ---- exact.cu, squares.cu, ranks.cu: the CPU's bits ---- */

void zero_cuda_clear(cudaStream_t stream, int64_t n, float *x);
void zero_cuda_adamw(cudaStream_t stream, const zero_adamw *h, const zero_adamw_arrays *a);
/* *sum, on the device, over the tree of base/tree.h. */
void zero_cuda_sum_squares(cudaStream_t stream, zero_type type, int64_t n, const void *x,
                           zero_cuda_room room, double *sum);
void zero_cuda_round(cudaStream_t stream, zero_type type, int64_t n, const float *in,
                     void *out);
void zero_cuda_accumulate(cudaStream_t stream, zero_type type, int64_t n, const float *sum,
                          const float *leaf, float *out);
/* out[rows, cols] = in rounded to `to`; in is of type `from`, its rows `stride` elements apart, those of
 * out `apart`. For products' factors and sums. */
void zero_cuda_convert(cudaStream_t stream, int64_t rows, int64_t cols, int64_t stride,
                       zero_type from, const void *in, zero_type to, int64_t apart,
                       void *out);
void zero_cuda_dropout(cudaStream_t stream, const zero_dropout *d, zero_type rows_type,
                       int64_t B, int64_t n, const void *x, void *y);
void zero_cuda_add_branch(cudaStream_t stream, const zero_branch *b);

/* The pieces of a zero_memory_sum. */
typedef struct {
    int n;
    const void *at[ZERO_MEMORY_TERMS];
} zero_cuda_terms;

/* ranks.cu: out[len] of type `result`, `type` or fp32. */
void zero_cuda_sum_ranks(cudaStream_t stream, const zero_cuda_terms *terms, zero_type type,
                         int64_t len, zero_type result, void *out);

/* ---- pointwise.cu: add_bias has the CPU's bits ---- */

void zero_cuda_add_bias(cudaStream_t stream, const zero_bias *b);
void zero_cuda_bias_backward(cudaStream_t stream, const zero_bias_grad *b,
                             zero_cuda_room room);
void zero_cuda_bias_gelu(cudaStream_t stream, const zero_bias *b);
void zero_cuda_bias_gelu_backward(cudaStream_t stream, const zero_bias_grad *b,
                                  zero_cuda_room room);

void zero_cuda_swiglu(cudaStream_t stream, const zero_swiglu *s);
void zero_cuda_swiglu_backward(cudaStream_t stream, const zero_swiglu *s);

/* ---- turn.cu: slices is 1 ---- */

void zero_cuda_turn(cudaStream_t stream, const zero_turn *t);
void zero_cuda_turn_backward(cudaStream_t stream, const zero_turn *t, zero_cuda_room room);

/* ---- norm.cu, cross_entropy.cu ---- */

void zero_cuda_layernorm(cudaStream_t stream, const zero_layernorm_args *n);
void zero_cuda_layernorm_backward(cudaStream_t stream, const zero_layernorm_grad_args *n,
                                  zero_cuda_room room);
void zero_cuda_cross_entropy(cudaStream_t stream, const zero_cross_entropy *e);

/* ---- embedding.cu: the CPU's bits. words is 0 ---- */

void zero_cuda_embedding(cudaStream_t stream, const zero_embedding *e);
void zero_cuda_embedding_backward(cudaStream_t stream, const zero_embedding_grad *e);

/* ---- cached.cu: keys and values that are kept ---- */

/* `past` is the host's, and read before they return. Remember copies bits. A text's bits do not depend
 * on those beside it. */
void zero_cuda_remember(cudaStream_t stream, const zero_cached *a);
void zero_cuda_recall(cudaStream_t stream, const zero_cached *a);

/* ---- few_rows.cu: products of few rows ---- */

/* The product without transpose_a, accumulate and slices, k > 0: fp32, nothing is rounded but c. The
 * bits of an element depend on its factors and k alone, and, unless transpose_b, on n. */
void zero_cuda_few_rows(cudaStream_t stream, const zero_gemm *g, zero_cuda_room room);

/* ---- attention.cu (fp32) and attention_tiles.cu (16-bit factors on tensor cores) ---- */

/* Chosen by a->factors; capability as zero_device_about.capability. Where tensor cores lack the type,
 * and for heads of more than 128 channels, fp32 computes: it takes any size. `work` is not used. */
void zero_cuda_attention(cudaStream_t stream, int capability, const zero_attention *a);
/* room.bytes >= 4 T H/K */
void zero_cuda_attention_backward(cudaStream_t stream, int capability,
                                  const zero_attention *a, zero_cuda_room room);

#ifdef __cplusplus
}
#endif
