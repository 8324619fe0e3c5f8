#include "math/blas.h"
#include "math/cpu.h"
#include "math/cpu_packed.h"

/* A long inner dimension is cut into equal parts: a short last one would be slow. */
static int64_t part_of_k(int64_t k)
{
    int64_t parts = k > ZERO_TILE_K ? (k + ZERO_TILE_K - 1) / ZERO_TILE_K : 1;
    return (k + parts - 1) / parts;
}

/* The part of op(b) from row p, column j on, as floats: where it is, or in the scratch. */
static void choose_b(const zero_math *math, const zero_gemm *g, int64_t p, int64_t j,
                     zero_gemm *tile)
{
    const size_t size = zero_type_size(g->b_type);
    const char *b = g->b;
    b += size * (size_t)(g->transpose_b ? j * g->ldb + p : p * g->ldb + j);
    tile->b = b;
    if (g->b_type == ZERO_FP32) return;
    int64_t rows = g->transpose_b ? tile->n : tile->k;
    int64_t cols = g->transpose_b ? tile->k : tile->n;
    for (int64_t r = 0; r < rows; r++)
        zero_convert(g->b_type, ZERO_FP32, cols, b + size * (size_t)(r * g->ldb),
                     math->scratch + r * cols);
    tile->b = math->scratch;
    tile->b_type = ZERO_FP32;
    tile->ldb = cols;
}

/* All rows of c, its columns from j on: adds the part of the sums from p on. */
static void gemm_tiles(const zero_math *math, const zero_gemm *g, int64_t j, int64_t p,
                       int64_t k)
{
    zero_gemm tile = *g;
    tile.n = zero_least(ZERO_TILE_N, g->n - j);
    tile.k = k;
    tile.accumulate = g->accumulate || p > 0;
    choose_b(math, g, p, j, &tile);
    for (int64_t i = 0; i < g->m; i += ZERO_TILE_M) {
        tile.m = zero_least(ZERO_TILE_M, g->m - i);
        tile.a = g->a + (g->transpose_a ? p * g->lda + i : i * g->lda + p);
        tile.c = g->c + i * g->ldc + j;
        zero_blas_gemm(&tile);
        zero_math_poll(math);
    }
}

static void gemm_rows(const zero_math *math, const zero_gemm *g, int64_t first, int64_t n)
{
    zero_gemm rows = *g;
    rows.m = n;
    rows.a += first * (g->transpose_a ? 1 : g->lda);
    rows.c += first * g->ldc;
    int64_t part = part_of_k(g->k);
    for (int64_t j = 0; j < g->n; j += ZERO_TILE_N) {
        int64_t p = 0;
        do { /* once even if k = 0: c must then become zero */
            gemm_tiles(math, &rows, j, p, zero_least(part, g->k - p));
            p += part;
        } while (p < g->k);
    }
}

void zero_cpu_gemm(const zero_math *math, const zero_gemm *g)
{
    zero_gemm whole = *g;
    if (!whole.lda) whole.lda = g->transpose_a ? g->m : g->k;
    if (!whole.ldb) whole.ldb = g->transpose_b ? g->k : g->n;
    if (!whole.ldc) whole.ldc = g->n;
    const zero_packed_kernels *kernels = math->fp32_products;
    if (g->in_bf16 && math->bf16_products) kernels = math->bf16_products;
    if (kernels) {
        zero_cpu_packed_gemm(math, kernels, &whole);
        return;
    }

    /* In fp32 a tile of c is finished before the next; of 16 bits a tile of b meets all rows,
     * for it is widened each time it is taken up. Either way an element of c adds its parts
     * of k in order: the bits are the same. */
    int64_t step = g->b_type == ZERO_FP32 ? ZERO_TILE_M : g->m;
    for (int64_t i = 0; i < g->m; i += step)
        gemm_rows(math, &whole, i, zero_least(step, g->m - i));
}
