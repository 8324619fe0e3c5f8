#include "math/cpu_packed.h"

#include <assert.h>
#include <string.h>

#include "math/team.h"

/* A block of a meets a block of b: m rows from i on, n columns from j on, k from p on. One block
 * of a meets all of b, block by block: activations rarely have more rows than a block, so
 * weights are packed once. */
typedef struct {
    const zero_packed_kernels *kernels;
    const zero_gemm *g;
    int64_t i, j, p, m, n, k;
    char *a, *b; /* packed: all threads pack a and share it; each has a block of b */
} blocks;

/* How a block of a and b is dealt: in parts of its rows, which are few where b is wide, and columns. */
typedef struct {
    int64_t rows, cols;
} dealt;

typedef struct {
    const zero_packed_kernels *kernels;
    const zero_gemm *g;
    char *a;
    dealt step;
    zero_turns next;
} product;

static size_t lane_bytes(const blocks *t)
{
    return (size_t)zero_round_up(t->k, t->kernels->depth) *
           zero_type_size(t->kernels->type);
}

/* This thread's panels of the block. */
static void pack_a(const zero_thread *me, const blocks *t)
{
    const zero_gemm *g = t->g;
    const zero_share_of_team own = zero_thread_share(me, t->m, t->kernels->rows);
    const int64_t i = t->i + own.first;
    zero_operand a = {.stride = g->lda, .along_k = !g->transpose_a};
    if (own.first == own.end) return;
    a.data = g->a + (g->transpose_a ? t->p * g->lda + i : i * g->lda + t->p);
    t->kernels->pack_a(&a, own.end - own.first, t->k,
                       t->a + (size_t)own.first * lane_bytes(t));
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

/* Rows [first, end) of the block. The inner loop runs along columns: c is written row of tiles by row
 * of tiles, which for the head's c of 154 MB is 1.8 times as fast as column by column. */
static void multiply(const blocks *t, int64_t first, int64_t end)
{
    const zero_packed_kernels *kernels = t->kernels;
    const int64_t depth = zero_round_up(t->k, kernels->depth), ldc = t->g->ldc;
    const size_t lane = lane_bytes(t);
    const bool add = t->g->accumulate || t->p > 0;
    kernels->begin();
    for (int64_t i = first; i < end; i += kernels->rows) {
        for (int64_t j = 0; j < t->n; j += kernels->cols) {
            const char *a = t->a + (size_t)i * lane, *b = t->b + (size_t)j * lane;
            float *c = t->g->c + (t->i + i) * ldc + t->j + j;
            int64_t rows = zero_min(kernels->rows, end - i);
            int64_t cols = zero_min(kernels->cols, t->n - j);
            if (rows == kernels->rows && cols == kernels->cols)
                kernels->multiply(depth, a, b, add, c, ldc);
            else
                multiply_edge(t, a, b, add, c, rows, cols);
        }
    }
    kernels->end();
}

static void multiply_row_of_blocks(const zero_thread *me, product *x, blocks *t)
{
    const dealt step = x->step;
    const int64_t across = zero_divide_up(t->g->n, step.cols);
    const int64_t pieces = across * zero_divide_up(t->m, step.rows);
    pack_a(me, t);
    if (me->index == 0) atomic_store_explicit(&x->next, 0, memory_order_relaxed);
    zero_thread_wait(me);
    for (int64_t at; (at = zero_turns_take(&x->next)) < pieces;) {
        const int64_t first = at / across * step.rows;
        t->j = at % across * step.cols;
        t->n = zero_min(step.cols, t->g->n - t->j);
        pack_b(t);
        multiply(t, first, zero_min(first + step.rows, t->m));
        zero_math_poll(&me->math);
    }
    zero_thread_wait(me);
}

static void multiply_all(const zero_thread *me, void *arg)
{
    product *x = arg;
    const zero_packed_kernels *kernels = x->kernels;
    const zero_gemm *g = x->g;
    const int64_t step_m = zero_block_len(g->m, kernels->block_m, kernels->rows);
    const int64_t step_k = zero_block_len(g->k, kernels->block_k, kernels->depth);
    blocks t = {.kernels = kernels, .g = g, .a = x->a, .b = (char *)me->math.scratch};
    t.b += (size_t)(kernels->block_m * kernels->block_k) * zero_type_size(kernels->type);
    for (t.i = 0; t.i < g->m; t.i += step_m) {
        t.m = zero_min(step_m, g->m - t.i);
        t.p = 0;
        do { /* once even if k = 0: c must then become zero */
            t.k = zero_min(step_k, g->k - t.p);
            multiply_row_of_blocks(me, x, &t);
            t.p += step_k;
        } while (t.p < g->k);
    }
}

/* Rows that b's packing costs, about: it is packed for each part of the rows. */
#define PACKING 24

/* The pieces for which the last thread ends first; of equal ones, the widest in the fewest parts. */
static dealt deal(const zero_packed_kernels *kernels, const zero_gemm *g, int threads)
{
    const int64_t m = zero_block_len(g->m, kernels->block_m, kernels->rows);
    dealt best = {m, zero_block_len(g->n, kernels->block_n, kernels->cols)};
    int64_t least = INT64_MAX;
    if (threads <= 1) return best;
    for (int64_t parts = 1; parts <= threads; parts *= 2) {
        const int64_t rows = zero_block_len(m, zero_divide_up(m, parts), kernels->rows);
        for (int64_t cols = kernels->block_n; cols > 0; cols -= kernels->cols) {
            const int64_t pieces = zero_divide_up(g->n, cols) * zero_divide_up(m, rows);
            const int64_t last = zero_divide_up(pieces, threads) * cols * (rows + PACKING);
            if (last >= least) continue;
            least = last;
            best = (dealt){rows, cols};
        }
    }
    return best;
}

void zero_cpu_packed_gemm(const zero_math *math, const zero_packed_kernels *kernels,
                          const zero_gemm *g)
{
    assert(kernels->rows * kernels->cols <= ZERO_PACKED_TILE);
    assert((size_t)((kernels->block_m + kernels->block_n) * kernels->block_k) *
               zero_type_size(kernels->type) <=
           (size_t)zero_math_scratch() * sizeof(float));
    product x = {.kernels = kernels,
                 .g = g,
                 .a = (char *)math->scratch,
                 .step = deal(kernels, g, math->threads)};
    zero_team_run(math, multiply_all, &x);
}
