#include "math/cpu.h"

#include "math/blas.h"
#include "math/cpu_few.h"
#include "math/cpu_slices.h"
#include "math/cpu_state.h"
#include "math/team.h"

/* A block that BLAS multiplies is at most 2 * 512 * 1024 * 512 = 0.5 Gflop: communication
 * waits at most a few milliseconds for a poll. The cost is in bench/results. Widened blocks
 * of b fill the scratch. */
#define BLOCK_M 512
#define BLOCK_N 1024
#define BLOCK_K 512

/* All rows of c, its columns from j on: adds k terms of the sums, from p on. */
static void gemm_blocks(const zero_math *math, const zero_gemm *g, int64_t j, int64_t p,
                        int64_t k)
{
    zero_gemm block = *g;
    block.n = zero_min(BLOCK_N, g->n - j);
    block.k = k;
    block.accumulate = g->accumulate || p > 0;
    /* Sets block->b to op(b) from row p, column j on, as floats: in place, or in the
     * scratch. */
    const size_t size = zero_type_size(g->b_type);
    const char *b = zero_gemm_b(g, p, j);
    block.b = b;
    if (g->b_type != ZERO_FP32) {
        int64_t rows = g->transpose_b ? block.n : block.k;
        int64_t cols = g->transpose_b ? block.k : block.n;
        assert(rows * cols <= zero_math_scratch());
        for (int64_t r = 0; r < rows; r++)
            zero_convert(g->b_type, ZERO_FP32, cols, b + size * (size_t)(r * g->ldb),
                         math->scratch + r * cols);
        block.b = math->scratch;
        block.b_type = ZERO_FP32;
        block.ldb = cols;
    }
    for (int64_t i = 0; i < g->m; i += BLOCK_M) {
        block.m = zero_min(BLOCK_M, g->m - i);
        block.a = zero_gemm_a(g, i, p);
        block.c = zero_gemm_c(g, i, j);
        zero_blas_gemm(&block);
        zero_math_poll(math);
    }
}

/* Columns [j, j + BLOCK_N) of n rows, from `first` on. */
static void gemm_rows(const zero_math *math, const zero_gemm *g, int64_t first, int64_t n,
                      int64_t j)
{
    zero_gemm rows = *g;
    rows.m = n;
    rows.a = zero_gemm_a(g, first, 0);
    rows.c = zero_gemm_c(g, first, 0);
    int64_t step = zero_block_len(g->k, BLOCK_K, 1), p = 0;
    do { /* once even if k = 0: c must then become zero */
        gemm_blocks(math, &rows, j, p, zero_min(step, g->k - p));
        p += step;
    } while (p < g->k);
}

typedef struct {
    const zero_gemm *g;
    zero_turns next;
} by_blas;

/* In fp32 a block of c is finished before the next. A 16-bit block of b is widened each
 * time it is used, so it meets all rows at once. Either way an element of c adds its blocks
 * of k in order: the bits are the same. Threads have blocks of their own, and each call of
 * BLAS is what it is with one thread. */
static void multiply_by_blas(const zero_thread *me, void *arg)
{
    by_blas *x = arg;
    const zero_gemm *g = x->g;
    const int64_t step = g->b_type == ZERO_FP32 || me->size > 1 ? BLOCK_M : g->m;
    const int64_t across = zero_divide_up(g->n, BLOCK_N);
    const int64_t pieces = g->m > 0 ? across * zero_divide_up(g->m, step) : 0;
    for (int64_t at; (at = zero_turns_take(&x->next)) < pieces;) {
        const int64_t i = at / across * step;
        gemm_rows(&me->math, g, i, zero_min(step, g->m - i), at % across * BLOCK_N);
    }
}

/* ---- cut ---- */

/* Threads have the cells of a grid over c, and each computes its own as a product alone:
 * none waits for another before the end, as threads that share what is packed would, block
 * by block. */
typedef struct {
    const zero_packed_kernels *kernels;
    const zero_gemm *g;
    int down, across; /* cells */
} grid;

/* Rows, or columns, that packing one of them costs, about: weights take 0.11 ns per number
 * in bf16 and 0.22 in fp32, a multiply-add 0.0047 and 0.0091 (Zen 5; bench/results). */
#define PACKING 24

static grid choose_grid(const zero_packed_kernels *kernels, const zero_gemm *g, int threads)
{
    grid best = {kernels, g, 1, 1};
    int64_t least = INT64_MAX;
    for (int down = 1; down <= threads; down++) {
        const int across = threads / down;
        const int64_t m = zero_round_up(zero_divide_up(g->m, down), kernels->rows);
        const int64_t n = zero_round_up(zero_divide_up(g->n, across), kernels->cols);
        const int64_t cost = m * n + PACKING * (m + n);
        if (cost >= least) continue;
        least = cost;
        best.down = down, best.across = across;
    }
    return best;
}

/* The whole of a product, or a cell. */
static void multiply_packed(const zero_math *math, const zero_packed_kernels *kernels,
                            const zero_gemm *g)
{
    if (g->slices > 1 && g->k > 0)
        zero_cpu_packed_slices(math, kernels, g);
    else
        zero_cpu_packed_gemm(math, kernels, g);
}

/* Any cut of rows or columns has the bits of the whole. */
static void multiply_cells(const zero_thread *me, void *arg)
{
    const grid *x = arg;
    const int cells = x->down * x->across;
    for (int i = me->index; i < cells; i += me->size) { /* there may be fewer threads */
        const zero_thread row = {.index = i / x->across, .size = x->down};
        const zero_thread col = {.index = i % x->across, .size = x->across};
        const zero_share_of_team rows = zero_thread_share(&row, x->g->m, x->kernels->rows);
        const zero_share_of_team cols = zero_thread_share(&col, x->g->n, x->kernels->cols);
        zero_gemm g = *x->g;
        g.m = rows.end - rows.first, g.n = cols.end - cols.first;
        if (g.m == 0 || g.n == 0) continue;
        g.a = zero_gemm_a(&g, rows.first, 0);
        g.b = zero_gemm_b(&g, 0, cols.first);
        g.c = zero_gemm_c(&g, rows.first, cols.first);
        multiply_packed(&me->math, x->kernels, &g);
    }
}

/* NULL: BLAS multiplies. */
static const zero_packed_kernels *kernels_for(const zero_math *math, const zero_gemm *g)
{
    if (g->factors == ZERO_BF16 && zero_cpu_bf16_of(math)) return zero_cpu_bf16_of(math);
    /* BLAS multiplies floats, in blocks that decide its bits: widened a, and sums that
     * wait to be rounded, would not fit the scratch beside b. Its sums depend on m and
     * n as well, so it has none of a product in slices. */
    if (!zero_cpu_fp32_of(math) &&
        !(g->slices == 0 && g->a_type == ZERO_FP32 && g->c_type == ZERO_FP32))
        return &zero_cpu_panels_of(math)->packed;
    return zero_cpu_fp32_of(math);
}

void zero_cpu_gemm(const zero_math *math, const zero_gemm *g)
{
    zero_gemm whole = *g;
    if (!whole.lda) whole.lda = g->transpose_a ? g->m : g->k;
    if (!whole.ldb) whole.ldb = g->transpose_b ? g->k : g->n;
    if (!whole.ldc) whole.ldc = g->n;
    const zero_packed_kernels *kernels = kernels_for(math, g);
    if (g->m == 0 || g->n == 0) return;
    if (zero_cpu_few_rows(math, &whole)) return;
    if (kernels && math->threads > 1) {
        grid x = choose_grid(kernels, &whole, math->threads);
        zero_team_run(math, multiply_cells, &x);
    } else if (kernels) {
        multiply_packed(math, kernels, &whole);
    } else {
        by_blas x = {.g = &whole};
        zero_team_run(math, multiply_by_blas, &x);
    }
}
