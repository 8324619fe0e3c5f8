/* bench_products.h - the matrix products of one GPT-2 training step, by BLAS alone.
 *
 * Steps are measured against them: the same shapes with plain calls of sgemm, or of a device's
 * library, one after another, with nothing between them. R rows (positions of a rank), C channels, L blocks:
 *
 *     qkv, proj, fc, fcproj    y[R,out] = x w    dx[R,in] = dy w'    dw[in,out] = x' dy
 *     logits, some rows at a time, of w[V,C]: the same three. A device's library has all rows at once,
 *     and words up to a multiple that suits it
 *
 * 6 R N flops, N = 12 L C^2 + V C. All blocks use the same memory, so weights may be in a cache,
 * which makes the measure faster if anything. */
#pragma once

#include "bench_block.h"
#include "zero/shape.h"

/* How products are multiplied. */
typedef struct {
    const zero_backend *backend; /* borrowed, like math; NULL: BLAS alone */
    zero_math *math;             /* open */
    zero_type type;              /* of weights, and of factors */
    zero_type rows_type;         /* of activations; the head's logits are fp32 */
    zero_logits_chunk logits;    /* zero_device_logits(); all rows for the yardstick */
    /* A device's library, with factors that have their type already. */
    bool by_yardstick;
} bench_products_by;

typedef struct {
    int64_t rows, microbatches, hidden, layers, vocab;
    bench_products_by by;
    bench_block block;
    void *left, *right, *weight; /* operands of the largest product */
    float *result;
} bench_products;

/* All steps of products in a step: as in nn/layers.c, with a backend's tiles or blocks and its polls,
 * or by the measure. ZERO_ERR_NOMEM, or the backend's failure. Release with _destroy. */
zero_status bench_products_init(bench_products *p, const bench_products_by *by,
                                const zero_shape *shape, int64_t rows,
                                int64_t microbatches);
void bench_products_destroy(bench_products *p); /* accepts a zeroed one */

/* All products of a step; the argument is a bench_products. Local. */
zero_status bench_products_run(void *products);

/* 6 N per position (nn/gpt2.h). */
double bench_products_flops(const zero_shape *shape, int64_t positions);
