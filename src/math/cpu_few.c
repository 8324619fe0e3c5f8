/* cpu_few.c - a product whose a has few rows reads each weight once, a tile after the other: all rows
 * of a meet it while it is in L1. A sum runs along k in order, slice by slice as the tree says, or has
 * the partial sums of row_dots(): bits depend on k alone. */
#include "math/cpu_few.h"

#include <string.h>

#include "base/tree.h"
#include "math/cpu_state.h"
#include "math/slices.h"

#define BLOCK_ROWS \
    16 /* of b, along k, that several rows of a meet; read from memory one by one */
#define TILE_COLS 512                /* of such a block, in L1 */
#define DOT_ROWS  8                  /* of b transposed */
#define POLL      (INT64_C(1) << 18) /* weights between two polls */

typedef struct {
    const zero_math *math;
    const zero_cpu_kernels *kernels;
    const zero_gemm *g;
    int64_t piece;  /* of k: one slice's of one part */
    int64_t unseen; /* weights since the last poll */
} product;

static void note(product *p, int64_t weights)
{
    p->unseen += weights;
    if (p->unseen < POLL) return;
    p->unseen = 0;
    zero_math_poll(p->math);
}

static const char *weight_at(const zero_gemm *g, int64_t row, int64_t col)
{
    return (const char *)g->b + zero_type_size(g->b_type) * (size_t)(row * g->ldb + col);
}

/* ---- b as it is: rows along k ---- */

/* A block's rows are read as one stream. In the order of tiles, a few lines from each row, memory gives
 * half as much. */
static void fetch(const zero_gemm *g, int64_t k, int64_t rows, int64_t cols)
{
    const size_t bytes = (size_t)cols * zero_type_size(g->b_type);
    for (int64_t r = 0; r < rows; r++) {
        const char *row = weight_at(g, k + r, 0);
        for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
    }
}

/* out[m,cols] += a's columns k .. k + rows - 1 times these rows of b. */
static void add_block(const product *p, int64_t k, int64_t rows, int64_t cols, float *out,
                      int64_t stride)
{
    const zero_gemm *g = p->g;
    const int64_t step = g->m > 1 ? TILE_COLS : cols;
    if (g->m > 1) fetch(g, k, rows, cols);
    for (int64_t at = 0; at < cols; at += step)
        for (int64_t i = 0; i < g->m; i++)
            p->kernels->add_rows(rows, zero_min(cols - at, step), g->a + i * g->lda + k,
                                 g->b_type, weight_at(g, k, at), g->ldb,
                                 out + i * stride + at);
}

static void add_range(product *p, int64_t k, int64_t n, int64_t cols, float *out,
                      int64_t stride)
{
    const int64_t step = p->g->m > 1 ? BLOCK_ROWS : 1;
    for (int64_t at = k; at < k + n; at += step) {
        const int64_t rows = zero_min(k + n - at, step);
        add_block(p, at, rows, cols, out, stride);
        note(p, rows * cols);
    }
}

static void clear(const product *p, int64_t cols, float *out, int64_t stride)
{
    for (int64_t i = 0; i < p->g->m; i++)
        memset(out + i * stride, 0, (size_t)cols * sizeof *out);
}

/* out = the tree over slices first .. first + count - 1; each level below its root takes m*cols
 * floats of `room`. */
static void sum_slices(product *p, int64_t first, int64_t count, int64_t cols, float *out,
                       int64_t stride, float *room)
{
    const zero_gemm *g = p->g;
    if (count == 1) {
        clear(p, cols, out, stride);
        for (int64_t k = first * p->piece; k < g->k; k += g->slices * p->piece)
            add_range(p, k, p->piece, cols, out, stride);
        return;
    }
    const int64_t left = zero_tree_left(count);
    sum_slices(p, first, left, cols, out, stride, room);
    sum_slices(p, first + left, count - left, cols, room, cols, room + g->m * cols);
    for (int64_t i = 0; i < g->m; i++)
        p->kernels->add(cols, out + i * stride, room + i * cols, out + i * stride);
}

static void multiply(product *p)
{
    const zero_gemm *g = p->g;
    if (g->slices > 1) {
        sum_slices(p, 0, g->slices, g->n, g->c, g->ldc, p->math->scratch);
    } else {
        clear(p, g->n, g->c, g->ldc);
        add_range(p, 0, g->k, g->n, g->c, g->ldc);
    }
}

/* ---- b transposed: its rows are columns of c ---- */

static void multiply_transposed(product *p)
{
    const zero_gemm *g = p->g;
    for (int64_t j = 0; j < g->n; j += DOT_ROWS) {
        const int64_t rows = zero_min(g->n - j, DOT_ROWS);
        for (int64_t i = 0; i < g->m; i++)
            p->kernels->row_dots(rows, g->k, g->a + i * g->lda, g->b_type,
                                 weight_at(g, j, 0), g->ldb, g->c + i * g->ldc + j);
        note(p, rows * g->k);
    }
}

static bool fits_scratch(const zero_gemm *g)
{
    int64_t levels = 0;
    for (int64_t n = g->slices; n > 1; n = (n + 1) / 2) levels++;
    return levels * g->m * g->n <= zero_math_scratch();
}

bool zero_cpu_few_rows(const zero_math *math, const zero_gemm *g)
{
    product p = {.math = math, .kernels = zero_cpu_kernels_of(math), .g = g};
    if (!g->few_rows || g->transpose_a || g->accumulate) return false;
    if (g->slices > 1 && (g->transpose_b || !fits_scratch(g))) return false;
    if (g->slices > 1) p.piece = zero_slices_piece(g);
    if (g->transpose_b)
        multiply_transposed(&p);
    else
        multiply(&p);
    return true;
}
