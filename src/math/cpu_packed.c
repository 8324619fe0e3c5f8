#include "math/cpu_packed.h"

#include <assert.h>
#include <string.h>

/* A block of a meets a block of b: m rows from i on, n columns from j on, k from p on. One block
 * of a meets all of b, block by block: activations rarely have more rows than a block, so
 * weights are packed once. */
typedef struct {
    const zero_packed_kernels *kernels;
    const zero_gemm *g;
    int64_t i, j, p, m, n, k;
    char *a, *b; /* packed */
} blocks;

static void pack_a(const blocks *t)
{
    const zero_gemm *g = t->g;
    zero_operand a = {.stride = g->lda, .along_k = !g->transpose_a};
    a.data = (const float *)g->a +
             (g->transpose_a ? t->p * g->lda + t->i : t->i * g->lda + t->p);
    t->kernels->pack_a(&a, t->m, t->k, t->a);
}

static void pack_b(const blocks *t)
{
    const zero_gemm *g = t->g;
    zero_operand b = {.type = g->b_type, .stride = g->ldb, .along_k = g->transpose_b};
    int64_t at = g->transpose_b ? t->j * g->ldb + t->p : t->p * g->ldb + t->j;
    b.data = (const char *)g->b + zero_type_size(g->b_type) * (size_t)at;
    t->kernels->pack_b(&b, t->n, t->k, t->b);
}

/* A tile of which only rows x cols belong to c. */
static void multiply_edge(const blocks *t, const void *a, const void *b, bool add, float *c,
                          int64_t rows, int64_t cols)
{
    const zero_packed_kernels *kernels = t->kernels;
    float tile[ZERO_PACKED_TILE] = {0};
    const size_t bytes = (size_t)cols * sizeof *c;
    if (add)
        for (int64_t r = 0; r < rows; r++)
            memcpy(tile + r * kernels->cols, c + r * t->g->ldc, bytes);
    kernels->multiply(zero_round_up(t->k, kernels->depth), a, b, add, tile, kernels->cols);
    for (int64_t r = 0; r < rows; r++)
        memcpy(c + r * t->g->ldc, tile + r * kernels->cols, bytes);
}

/* The inner loop runs along columns: c is written row of tiles by row of tiles, which for the
 * head's c of 154 MB is 1.8 times as fast as column by column. */
static void multiply(const blocks *t)
{
    const zero_packed_kernels *kernels = t->kernels;
    const int64_t depth = zero_round_up(t->k, kernels->depth), ldc = t->g->ldc;
    const size_t lane = (size_t)depth * zero_type_size(kernels->type); /* packed bytes */
    const bool add = t->g->accumulate || t->p > 0;
    kernels->begin();
    for (int64_t i = 0; i < t->m; i += kernels->rows) {
        for (int64_t j = 0; j < t->n; j += kernels->cols) {
            const char *a = t->a + (size_t)i * lane, *b = t->b + (size_t)j * lane;
            float *c = (float *)t->g->c + (t->i + i) * ldc + t->j + j;
            int64_t rows = zero_min(kernels->rows, t->m - i);
            int64_t cols = zero_min(kernels->cols, t->n - j);
            if (rows == kernels->rows && cols == kernels->cols)
                kernels->multiply(depth, a, b, add, c, ldc);
            else
                multiply_edge(t, a, b, add, c, rows, cols);
        }
    }
    kernels->end();
}

static void multiply_row_of_blocks(const zero_math *math, blocks *t)
{
    const int64_t step = zero_block_len(t->g->n, t->kernels->block_n, t->kernels->cols);
    pack_a(t);
    for (t->j = 0; t->j < t->g->n; t->j += step) {
        t->n = zero_min(step, t->g->n - t->j);
        pack_b(t);
        multiply(t);
        zero_math_poll(math);
    }
}

/* A block of a is shorter if k is, and then it has more rows: b is packed again for each block, which
 * for the gradient of the head's weights, 50257 rows of k = 256, was more than all of a. */
static int64_t most_rows(const zero_packed_kernels *kernels, int64_t k)
{
    const int64_t rows = kernels->block_m * kernels->block_k / zero_max(k, kernels->depth);
    return zero_max(kernels->block_m, rows / kernels->rows * kernels->rows);
}

void zero_cpu_packed_gemm(const zero_math *math, const zero_packed_kernels *kernels,
                          const zero_gemm *g)
{
    assert(kernels->rows * kernels->cols <= ZERO_PACKED_TILE);
    assert((size_t)((kernels->block_m + kernels->block_n) * kernels->block_k) *
               zero_type_size(kernels->type) <=
           (size_t)zero_math_scratch() * sizeof(float));
    const int64_t step_k = zero_block_len(g->k, kernels->block_k, kernels->depth);
    const int64_t step_m = zero_block_len(g->m, most_rows(kernels, step_k), kernels->rows);
    blocks t = {.kernels = kernels, .g = g, .a = (char *)math->scratch};
    t.b =
        t.a + (size_t)(kernels->block_m * kernels->block_k) * zero_type_size(kernels->type);
    for (t.i = 0; t.i < g->m; t.i += step_m) {
        t.m = zero_min(step_m, g->m - t.i);
        t.p = 0;
        do { /* once even if k = 0: c must then become zero */
            t.k = zero_min(step_k, g->k - t.p);
            multiply_row_of_blocks(math, &t);
            t.p += step_k;
        } while (t.p < g->k);
    }
}
