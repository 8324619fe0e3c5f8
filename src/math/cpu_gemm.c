#include "math/cpu_gemm.h"

#include <assert.h>

#include "math/blas.h"
#include "math/cpu_few.h"
#include "math/cpu_packed.h"
#include "math/cpu_slices.h"
#include "math/cpu_state.h"

/* A block that BLAS multiplies is at most 2 * 512 * 1024 * 512 = 0.5 Gflop: communication waits
 * at most a few milliseconds for a poll. The cost is in bench/results. Widened blocks of b fill
 * the scratch. */
#define BLOCK_M 512
#define BLOCK_N 1024
#define BLOCK_K 512

/* Sets block->b to op(b) from row p, column j on, as floats: in place, or in the scratch. */
static void choose_b(const zero_math *math, const zero_gemm *g, int64_t p, int64_t j,
                     zero_gemm *block)
{
    const size_t size = zero_type_size(g->b_type);
    const char *b = g->b;
    b += size * (size_t)(g->transpose_b ? j * g->ldb + p : p * g->ldb + j);
    block->b = b;
    if (g->b_type == ZERO_FP32) return;
    int64_t rows = g->transpose_b ? block->n : block->k;
    int64_t cols = g->transpose_b ? block->k : block->n;
    assert(rows * cols <= zero_math_scratch());
    for (int64_t r = 0; r < rows; r++)
        zero_convert(g->b_type, ZERO_FP32, cols, b + size * (size_t)(r * g->ldb),
                     math->scratch + r * cols);
    block->b = math->scratch;
    block->b_type = ZERO_FP32;
    block->ldb = cols;
}

/* All rows of c, its columns from j on: adds k terms of the sums, from p on. */
static void gemm_blocks(const zero_math *math, const zero_gemm *g, int64_t j, int64_t p,
                        int64_t k)
{
    zero_gemm block = *g;
    block.n = zero_min(BLOCK_N, g->n - j);
    block.k = k;
    block.accumulate = g->accumulate || p > 0;
    choose_b(math, g, p, j, &block);
    for (int64_t i = 0; i < g->m; i += BLOCK_M) {
        block.m = zero_min(BLOCK_M, g->m - i);
        block.a = g->a + (g->transpose_a ? p * g->lda + i : i * g->lda + p);
        block.c = g->c + i * g->ldc + j;
        zero_blas_gemm(&block);
        zero_math_poll(math);
    }
}

static void gemm_rows(const zero_math *math, const zero_gemm *g, int64_t first, int64_t n)
{
    zero_gemm rows = *g;
    rows.m = n;
    rows.a += first * (g->transpose_a ? 1 : g->lda);
    rows.c += first * g->ldc;
    int64_t step = zero_block_len(g->k, BLOCK_K, 1);
    for (int64_t j = 0; j < g->n; j += BLOCK_N) {
        int64_t p = 0;
        do { /* once even if k = 0: c must then become zero */
            gemm_blocks(math, &rows, j, p, zero_min(step, g->k - p));
            p += step;
        } while (p < g->k);
    }
}

/* NULL: BLAS multiplies. Its sums depend on m and n as well, so it has none of a product in slices. */
static const zero_packed_kernels *kernels_for(const zero_math *math, const zero_gemm *g)
{
    if (g->factors == ZERO_BF16 && zero_cpu_bf16_of(math)) return zero_cpu_bf16_of(math);
    if (g->slices > 0 && !zero_cpu_fp32_of(math)) return &zero_cpu_panels_of(math)->packed;
    return zero_cpu_fp32_of(math);
}

void zero_cpu_gemm(const zero_math *math, const zero_gemm *g)
{
    zero_gemm whole = *g;
    if (!whole.lda) whole.lda = g->transpose_a ? g->m : g->k;
    if (!whole.ldb) whole.ldb = g->transpose_b ? g->k : g->n;
    if (!whole.ldc) whole.ldc = g->n;
    const zero_packed_kernels *kernels = kernels_for(math, g);
    if (zero_cpu_few_rows(math, &whole)) return;
    if (g->slices > 1 && g->m > 0 && g->n > 0 && g->k > 0) {
        zero_cpu_packed_slices(math, kernels, &whole);
        return;
    }
    if (kernels) {
        zero_cpu_packed_gemm(math, kernels, &whole);
        return;
    }

    /* In fp32 a block of c is finished before the next. A 16-bit block of b is widened each time
     * it is used, so it meets all rows at once. Either way an element of c adds its blocks of k
     * in order: the bits are the same. */
    int64_t step = g->b_type == ZERO_FP32 ? BLOCK_M : g->m;
    for (int64_t i = 0; i < g->m; i += step)
        gemm_rows(math, &whole, i, zero_min(step, g->m - i));
}
