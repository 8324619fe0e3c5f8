/* cpu_few.c - a product whose a has few rows reads each weight once, in the order of memory: all rows
 * of a meet it in a register. A sum runs along k in order, slice by slice as the tree says, or has
 * the partial sums of row_dots(): bits depend on k alone. */
#include "math/cpu_few.h"

#include <string.h>

#include "base/tree.h"
#include "math/cpu_state.h"
#include "math/slices.h"

#define BLOCK_ROWS 32 /* of b, between two looks at the time since the last poll */
#define POLL       (INT64_C(1) << 18) /* weights between two polls */

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

/* out[m,cols] += a's columns k .. k + rows - 1 times these rows of b. */
static void add_block(const product *p, int64_t k, int64_t rows, int64_t cols, float *out,
                      int64_t stride)
{
    const zero_gemm *g = p->g;
    p->kernels->add_rows(g->b_type, &(zero_rows){.m = g->m,
                                                 .rows = rows,
                                                 .n = cols,
                                                 .x = g->a + k,
                                                 .x_stride = g->lda,
                                                 .b = weight_at(g, k, 0),
                                                 .stride = g->ldb,
                                                 .out = out,
                                                 .out_stride = stride});
}

static void add_range(product *p, int64_t k, int64_t n, int64_t cols, float *out,
                      int64_t stride)
{
    for (int64_t at = k; at < k + n; at += BLOCK_ROWS) {
        const int64_t rows = zero_min(k + n - at, BLOCK_ROWS);
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
    for (int64_t j = 0; j < g->n; j += BLOCK_ROWS) {
        const int64_t rows = zero_min(g->n - j, BLOCK_ROWS);
        p->kernels->row_dots(g->b_type, &(zero_rows){.m = g->m,
                                                     .rows = rows,
                                                     .n = g->k,
                                                     .x = g->a,
                                                     .x_stride = g->lda,
                                                     .b = weight_at(g, j, 0),
                                                     .stride = g->ldb,
                                                     .out = g->c + j,
                                                     .out_stride = g->ldc});
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
