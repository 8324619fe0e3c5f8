/* bench_products.h - the matrix products of one GPT-2 training step, by BLAS alone.
 *
 * Steps are measured against them: the same shapes with plain calls of sgemm, one after another,
 * with nothing between them. R rows (positions of a rank), C channels, L blocks:
 *
 *     qkv, proj, fc, fcproj    y[R,out] = x w    dx[R,in] = dy w'    dw[in,out] = x' dy
 *     logits, 256 rows at a time, of w[V,C]: the same three
 *
 * 6 R N flops, N = 12 L C^2 + V C. All blocks use the same memory, so weights may be in a cache,
 * which makes the measure faster if anything. */
#pragma once

#include "math/backend.h"
#include "zero/gpt2.h"

typedef struct {
    int64_t rows, microbatches, hidden, layers, vocab;
    float *left, *right, *result; /* owned: operands of the largest product */
    zero_type type;               /* of the weights, with a backend */
    void *weight;                 /* owned: `right` in that type */
    const zero_backend *backend;  /* borrowed, like math; NULL: BLAS alone */
    const zero_math *math;
} bench_products;

/* ZERO_ERR_NOMEM. Release with _destroy. */
ZERO_NODISCARD zero_status bench_products_init(bench_products *p,
                                               const zero_gpt2_shape *shape, int64_t rows,
                                               int64_t microbatches);
void bench_products_destroy(bench_products *p); /* accepts a zeroed one */

/* Lets a backend multiply as in a step of this type: with bf16 factors if that is bf16, with
 * its tiles or blocks and its polls. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status bench_products_use(bench_products *p,
                                              const zero_backend *backend,
                                              const zero_math *math, zero_type type);

/* All products of a step; the argument is a bench_products. Local, cannot fail. */
zero_status bench_products_run(void *products);

/* 6 N per position (nn/gpt2.h). */
double bench_products_flops(const zero_gpt2_shape *shape, int64_t positions);
