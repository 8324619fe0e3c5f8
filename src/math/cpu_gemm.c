#include "math/blas.h"
#include "math/cpu.h"

/* One tile is at most 2 * 512 * 1024 * 512 = 0.5 Gflop: a few milliseconds are the longest
 * time that communication waits for a poll. What that costs: bench/README.md. */
#define TILE_M 512
#define TILE_N 1024
#define TILE_K 512

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A long inner dimension is cut into equal parts: a short last one would be slow. */
static int64_t part_of_k(int64_t k)
{
    int64_t parts = k > TILE_K ? (k + TILE_K - 1) / TILE_K : 1;
    return (k + parts - 1) / parts;
}

static void gemm_tile(const zero_gemm *g, int64_t i, int64_t j, int64_t p, int64_t k)
{
    zero_gemm tile = *g;
    tile.m = min64(TILE_M, g->m - i);
    tile.n = min64(TILE_N, g->n - j);
    tile.k = k;
    tile.a += g->transpose_a ? p * g->lda + i : i * g->lda + p;
    tile.b += g->transpose_b ? j * g->ldb + p : p * g->ldb + j;
    tile.c += i * g->ldc + j;
    tile.accumulate = g->accumulate || p > 0;
    zero_blas_gemm(&tile);
}

void zero_cpu_gemm(const zero_math *math, const zero_gemm *g)
{
    zero_gemm whole = *g;
    if (!whole.lda) whole.lda = g->transpose_a ? g->m : g->k;
    if (!whole.ldb) whole.ldb = g->transpose_b ? g->k : g->n;
    if (!whole.ldc) whole.ldc = g->n;

    int64_t part = part_of_k(g->k);
    for (int64_t i = 0; i < g->m; i += TILE_M) {
        for (int64_t j = 0; j < g->n; j += TILE_N) {
            int64_t p = 0;
            do { /* once even if k = 0: c must then become zero */
                gemm_tile(&whole, i, j, p, min64(part, g->k - p));
                zero_math_poll(math);
                p += part;
            } while (p < g->k);
        }
    }
}
