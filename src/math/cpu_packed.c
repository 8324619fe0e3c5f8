#include "math/cpu_packed.h"

/* A block of a meets a block of b: m rows from i on, n columns from j on, k from p on. One
 * block of a meets all of b, block by block: activations rarely have more rows than a
 * block, so weights are packed once.
 *
 * Sums wait in fp32: in c itself, or, if c has 16 bits, in the scratch until their last
 * block of k, which rounds them once. With one block of k a row of tiles is rounded before
 * the next is computed. With several all rows of the block of a wait, for `width` columns
 * that are finished before the next. */
typedef struct {
    int64_t step_m, step_n, step_k, width;
    int64_t stride; /* of sums that wait; 0: they are in c */
    double cost;    /* infinite: they do not fit the scratch */
} form;

typedef struct {
    const zero_packed_kernels *kernels;
    const zero_gemm *g;
    form form;
    int64_t left, end; /* columns [left, end) of c */
    int64_t i, j, p, m, n, k;
    int64_t depth; /* k in whole granules, as packed */
    char *a, *b;   /* packed */
    float *sums;   /* that wait */
} blocks;

static void pack_a(const blocks *t)
{
    const zero_gemm *g = t->g;
    const zero_operand a = {.data = zero_gemm_a(g, t->i, t->p),
                            .type = g->a_type,
                            .stride = g->lda,
                            .along_k = !g->transpose_a};
    t->kernels->pack_a(&a, t->m, t->k, t->a);
}

static void pack_b(const blocks *t)
{
    const zero_gemm *g = t->g;
    const zero_operand b = {.data = zero_gemm_b(g, t->p, t->j),
                            .type = g->b_type,
                            .stride = g->ldb,
                            .along_k = g->transpose_b};
    t->kernels->pack_b(&b, t->n, t->k, t->b);
}

/* ---- tiles ---- */

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
    kernels->multiply(t->depth, a, b, add, tile, kernels->cols);
    for (int64_t r = 0; r < rows; r++)
        memcpy(c + r * t->g->ldc, tile + r * kernels->cols, bytes);
}

/* A tile of c, a line in each row, is here when its sums are rounded: 6 % of products with
 * short sums. */
static void fetch_tile(const blocks *t, int64_t i, int64_t j, int64_t rows)
{
    const zero_gemm *g = t->g;
    const char *c = zero_gemm_c(g, t->i + i, t->j + j);
    const int64_t row = (int64_t)zero_type_size(g->c_type) * g->ldc;
    for (int64_t r = 0; r < rows; r++) __builtin_prefetch(c + r * row, 1);
}

/* A row of tiles whose sums wait, where every tile is whole; rounded after its last block
 * of k. */
static void multiply_waiting(const blocks *t, int64_t i, size_t lane)
{
    const zero_packed_kernels *kernels = t->kernels;
    const zero_gemm *g = t->g;
    const form *f = &t->form;
    const bool ends = t->p + t->k >= g->k;
    const int64_t rows = zero_min(kernels->rows, t->m - i);
    float *sums = t->sums;
    if (f->step_k < g->k) sums += i * f->stride + t->j - t->left;
    for (int64_t j = 0; j < t->n; j += kernels->cols) {
        if (ends) fetch_tile(t, i, j, rows);
        kernels->multiply(t->depth, t->a + (size_t)i * lane, t->b + (size_t)j * lane,
                          t->p > 0, sums + j, f->stride);
    }
    for (int64_t r = 0; ends && r < rows; r++)
        zero_convert(ZERO_FP32, g->c_type, t->n, sums + r * f->stride,
                     zero_gemm_c(g, t->i + i + r, t->j));
}

static void multiply_in_place(const blocks *t, int64_t i, size_t lane)
{
    const zero_packed_kernels *kernels = t->kernels;
    const zero_gemm *g = t->g;
    const bool add = g->accumulate || t->p > 0;
    const int64_t rows = zero_min(kernels->rows, t->m - i);
    for (int64_t j = 0; j < t->n; j += kernels->cols) {
        const char *a = t->a + (size_t)i * lane, *b = t->b + (size_t)j * lane;
        float *c = zero_gemm_c(g, t->i + i, t->j + j);
        const int64_t cols = zero_min(kernels->cols, t->n - j);
        if (rows == kernels->rows && cols == kernels->cols)
            kernels->multiply(t->depth, a, b, add, c, g->ldc);
        else
            multiply_edge(t, a, b, add, c, rows, cols);
    }
}

/* The inner loop runs along columns: c is written row of tiles by row of tiles, which for
 * the head's c of 154 MB is 1.8 times as fast as column by column. */
static void multiply(const blocks *t)
{
    const size_t lane = (size_t)t->depth * zero_type_size(t->kernels->type); /* bytes */
    t->kernels->begin();
    for (int64_t i = 0; i < t->m; i += t->kernels->rows)
        if (t->form.stride > 0)
            multiply_waiting(t, i, lane);
        else
            multiply_in_place(t, i, lane);
    t->kernels->end();
}

/* ---- blocks ---- */

/* A block of a is shorter if k is, and then it has more rows: b is packed again for each
 * block, which for the gradient of the head's weights, 50257 rows of k = 256, was more than
 * all of a. */
static int64_t most_rows(const zero_packed_kernels *kernels, int64_t k)
{
    const int64_t rows = kernels->block_m * kernels->block_k / zero_max(k, kernels->depth);
    return zero_max(kernels->block_m, rows / kernels->rows * kernels->rows);
}

static form form_of_fp32(const zero_packed_kernels *kernels, const zero_gemm *g)
{
    form f = {.width = g->n};
    f.step_k = zero_block_len(g->k, kernels->block_k, kernels->depth);
    f.step_m = zero_block_len(g->m, most_rows(kernels, f.step_k), kernels->rows);
    f.step_n = zero_block_len(g->n, kernels->block_n, kernels->cols);
    return f;
}

/* A multiple of a cache line, as the columns of a tile are. */
static size_t bytes_of_b(const zero_packed_kernels *kernels, const form *f)
{
    return (size_t)(f->step_n * f->step_k) * zero_type_size(kernels->type);
}

/* step_k and width are given, and the most columns of b in a block. */
static form form_that_fits(const zero_packed_kernels *kernels, const zero_gemm *g, form f,
                           int64_t most_n)
{
    const bool keeps = f.step_k < g->k;
    const int64_t size = (int64_t)zero_type_size(kernels->type);
    const int64_t all = zero_math_scratch() * (int64_t)sizeof(float);
    f.step_n = zero_block_len(f.width, most_n, kernels->cols);
    f.stride = keeps ? zero_round_up(f.width, kernels->cols) : f.step_n;
    const int64_t waits = f.stride * (int64_t)sizeof(float);
    const int64_t rest =
        all - (int64_t)bytes_of_b(kernels, &f) - (keeps ? 0 : kernels->rows * waits);
    const int64_t row = f.step_k * size + (keeps ? waits : 0);
    const int64_t rows =
        zero_max(rest, 0) / zero_max(row, 1) / kernels->rows * kernels->rows;
    f.cost = INFINITY;
    if (rows == 0) return f;
    f.step_m = zero_block_len(g->m, rows, kernels->rows);
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    f.cost = (double)zero_divide_up(g->m, f.step_m) * n * k +
             (double)zero_divide_up(g->n, f.width) * m * k +
             (double)zero_divide_up(g->k, zero_max(f.step_k, 1)) * m * n;
    return f;
}

/* The cheapest form for a block of k: b in blocks of fewer columns leaves more rows of a,
 * and cut columns leave more rows of sums. */
static form form_of_block(const zero_packed_kernels *kernels, const zero_gemm *g,
                          int64_t step_k)
{
    const int64_t longer = zero_max(zero_divide_up(step_k, kernels->block_k), 1);
    form best = {.cost = INFINITY};
    for (int64_t cuts = 1; cuts == 1 || (step_k < g->k && g->n / cuts >= kernels->cols);
         cuts *= 2)
        for (int64_t narrow = 1; narrow <= 4; narrow++) {
            form f = {.step_k = step_k};
            f.width = zero_block_len(g->n, zero_divide_up(g->n, cuts), kernels->cols);
            const int64_t most_n = kernels->block_n / longer / narrow;
            f = form_that_fits(kernels, g, f,
                               zero_max(most_n / kernels->cols, 1) * kernels->cols);
            if (f.cost < best.cost) best = f;
        }
    return best;
}

/* Kernels whose sums run on from c may have any block of k; for others it decides the
 * bits. */
static form form_of_16_bits(const zero_packed_kernels *kernels, const zero_gemm *g)
{
    int64_t step = zero_block_len(g->k, kernels->block_k, kernels->depth);
    form best = form_of_block(kernels, g, step);
    while (!kernels->adds_sums && step < g->k) {
        step = zero_min(2 * step, zero_round_up(g->k, kernels->depth));
        const form f = form_of_block(kernels, g, step);
        if (f.cost < best.cost) best = f;
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
    assert(g->c_type == ZERO_FP32 || !g->accumulate);
    blocks t = {.kernels = kernels, .g = g};
    t.form =
        g->c_type == ZERO_FP32 ? form_of_fp32(kernels, g) : form_of_16_bits(kernels, g);
    t.sums = math->scratch;
    const int64_t waiting = t.form.step_k < g->k ? t.form.step_m : kernels->rows;
    t.b = (char *)(t.sums + waiting * t.form.stride);
    t.a = t.b + bytes_of_b(kernels, &t.form);
    for (t.i = 0; t.i < g->m; t.i += t.form.step_m) {
        t.m = zero_min(t.form.step_m, g->m - t.i);
        for (t.left = 0; t.left < g->n; t.left += t.form.width) {
            t.end = zero_min(t.left + t.form.width, g->n);
            /* All k of a block of rows, for columns [left, end). */
            t.p = 0;
            do { /* once even if k = 0: c must then become zero */
                t.k = zero_min(t.form.step_k, t.g->k - t.p);
                t.depth = zero_round_up(t.k, t.kernels->depth);
                pack_a(&t);
                for (t.j = t.left; t.j < t.end; t.j += t.form.step_n) {
                    t.n = zero_min(t.form.step_n, t.end - t.j);
                    pack_b(&t);
                    multiply(&t);
                    zero_math_poll(math);
                }
                t.p += t.form.step_k;
            } while (t.p < t.g->k);
        }
    }
}
