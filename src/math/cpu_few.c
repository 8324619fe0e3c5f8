/* cpu_few.c - a product whose a has few rows reads each weight once, in the order of
 * memory: all rows of a meet it in a register. A sum runs along k in order, slice by slice
 * as the tree says, or each slice has the partial sums of row_dots(): bits depend on k
 * alone. Threads
 * have columns of c.
 *
 *     b, a piece of k by columns, is read        from ZERO_ROWS_MANY rows of a on
 *     in blocks of BLOCK_ROWS by all columns     in blocks of MANY_ROWS by MANY_COLS,
 *                                                widened first */
#include "math/cpu_few.h"

#include "math/cpu_state.h"
#include "math/slices.h"
#include "math/team.h"

#define BLOCK_ROWS 32 /* of b, between two looks at the time since the last poll */
#define MANY_ROWS  64
#define MANY_DOTS  8                  /* rows of a transposed b, which stay in L1 */
#define MANY_COLS  512                /* such a block, 128 KiB, stays in a core's L2 */
#define POLL       (INT64_C(1) << 18) /* weights between two polls */
#define LINE       16                 /* columns: threads write to lines of their own */
#define MOST_ROWS  16 /* rows of 16 bits that are worth a cut of the columns */
#define MOST_K     (INT64_C(1) << 18) /* numbers of such a row: half of the scratch */

typedef struct {
    const zero_math *math;
    const zero_cpu_kernels *kernels;
    const zero_gemm *g;
    int64_t unseen; /* weights since the last poll */
    float *room;    /* of one block; NULL: few rows */
} product;

static void note(product *p, int64_t weights)
{
    p->unseen += weights;
    if (p->unseen < POLL) return;
    p->unseen = 0;
    zero_math_poll(p->math);
}

/* ---- b as it is: rows along k ---- */

/* Columns [first, first + n) of c, in place or in memory of their own. */
typedef struct {
    int64_t first, n;
    float *out;
    int64_t stride;
} columns;

/* out[m,n] += a's columns k .. k + rows - 1 times these rows of b. */
static void add_block(product *p, int64_t k, int64_t rows, const columns *c)
{
    const zero_gemm *g = p->g;
    p->kernels->add_rows(g->b_type, &(zero_rows){.m = g->m,
                                                 .rows = rows,
                                                 .n = c->n,
                                                 .x = (const float *)g->a + k,
                                                 .x_stride = g->lda,
                                                 .b = zero_gemm_b(g, k, c->first),
                                                 .stride = g->ldb,
                                                 .out = c->out,
                                                 .out_stride = c->stride,
                                                 .room = p->room});
    note(p, rows * c->n);
}

static void add_range(product *p, int64_t k, int64_t n, const columns *c)
{
    const int64_t rows = p->room ? MANY_ROWS : BLOCK_ROWS,
                  cols = p->room ? MANY_COLS : c->n;
    for (int64_t j = 0; j < c->n; j += cols)
        for (int64_t at = k; at < k + n; at += rows) {
            const columns some = {c->first + j, zero_min(c->n - j, cols), c->out + j,
                                  c->stride};
            add_block(p, at, zero_min(k + n - at, rows), &some);
        }
}

static void add_slice(product *p, int64_t slice, const columns *c)
{
    const zero_gemm *g = p->g;
    for (int64_t i = 0; i < g->m; i++) zero_clear(c->out + i * c->stride, c->n);
    const int64_t all = g->slices > 1 ? g->k / g->slices : g->k;
    for (int64_t at = 0, run = all; at < all; at += run) {
        const int64_t k = g->slices > 1 ? zero_slices_place(g, slice, at, &run) : 0;
        add_range(p, k, run, c);
    }
}

/* ---- b transposed: its rows are columns of c ---- */

/* The slices are of one part. */
static void dot_slice(product *p, int64_t slice, const columns *c)
{
    const zero_gemm *g = p->g;
    const int64_t n = g->k / zero_max(g->slices, 1), k = slice * n;
    p->kernels->row_dots(g->b_type, &(zero_rows){.m = g->m,
                                                 .rows = c->n,
                                                 .n = n,
                                                 .x = (const float *)g->a + k,
                                                 .x_stride = g->lda,
                                                 .b = zero_gemm_b(g, k, c->first),
                                                 .stride = g->ldb,
                                                 .out = c->out,
                                                 .out_stride = c->stride});
    note(p, c->n * n);
}

/* ---- the sums ---- */

/* The tree over slices first .. first + count - 1; each level below its root takes m*n
 * floats of `room`. */
static void sum_slices(product *p, int64_t first, int64_t count, const columns *c,
                       float *room)
{
    const zero_gemm *g = p->g;
    if (count == 1) {
        (g->transpose_b ? dot_slice : add_slice)(p, first, c);
        return;
    }
    const int64_t left = zero_tree_left(count);
    const columns right = {c->first, c->n, room, c->n};
    sum_slices(p, first, left, c, room);
    sum_slices(p, first + left, count - left, &right, room + g->m * c->n);
    for (int64_t i = 0; i < g->m; i++)
        p->kernels->add(c->n, c->out + i * c->stride, room + i * c->n,
                        c->out + i * c->stride);
}

static int64_t levels_of(const zero_gemm *g)
{
    int64_t levels = 0;
    for (int64_t n = g->slices; n > 1; n = (n + 1) / 2) levels++;
    return levels;
}

/* The sums of slices beside a block of b fill a thread's scratch. */
static int64_t columns_at_a_time(const zero_gemm *g)
{
    const int64_t room = zero_math_scratch() - zero_rows_room(MANY_ROWS, MANY_COLS);
    return g->slices > 1 ? room / (levels_of(g) * g->m) / LINE * LINE : g->n;
}

static void multiply(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_gemm *g = arg;
    product p = {.math = math, .kernels = zero_cpu_kernels_of(math), .g = g};
    const bool are_many = g->m >= ZERO_ROWS_MANY;
    int64_t step = columns_at_a_time(g);
    if (g->transpose_b) step = zero_min(are_many ? MANY_DOTS : BLOCK_ROWS, step);
    if (g->slices > 1) zero_slices_check(g);
    if (are_many) p.room = math->scratch;
    for (int64_t j = first; j < end; j += step) {
        const columns c = {j, zero_min(end - j, step), (float *)g->c + j, g->ldc};
        sum_slices(&p, 0, zero_max(g->slices, 1), &c,
                   math->scratch + zero_rows_room(MANY_ROWS, MANY_COLS));
    }
}

/* ---- arrays of 16 bits ---- */

/* a is widened, and c rounded, as many rows and columns at a time as fit a thread's scratch
 * behind what the product of floats takes: a sum of each level of the tree. */
typedef struct {
    int64_t rows, cols;
    float *levels, *a, *c; /* c: unless it is fp32 */
} room;

static room room_of(const zero_math *math, const zero_gemm *g, int64_t cols)
{
    const int64_t blocks = zero_rows_room(MANY_ROWS, MANY_COLS);
    const int64_t sums = levels_of(g) + (g->c_type != ZERO_FP32);
    const int64_t all = zero_math_scratch() - blocks;
    const int64_t few = zero_min(g->m, MOST_ROWS);
    room r = {.cols = zero_round_up(cols, LINE)};
    while (r.cols > LINE && all / zero_max(g->k + sums * r.cols, 1) < few)
        r.cols = zero_round_up(r.cols / 2, LINE);
    r.rows = zero_min(g->m, all / zero_max(g->k + sums * r.cols, 1));
    r.levels = math->scratch + blocks;
    r.a = r.levels + levels_of(g) * r.rows * r.cols;
    r.c = r.a + r.rows * g->k;
    return r;
}

/* Rows [i, i + g->m) of c from widened ones, columns from j on. */
static void multiply_widened(const zero_math *math, const zero_gemm *g, int64_t i,
                             int64_t j, int64_t cols, const room *r)
{
    const bool rounds = g->c_type != ZERO_FP32;
    zero_gemm some = *g;
    void *c = zero_gemm_c(g, i, j);
    some.n = cols;
    some.a = r->a, some.a_type = ZERO_FP32, some.lda = g->k;
    some.b = zero_gemm_b(g, 0, j);
    some.c = rounds ? r->c : c, some.c_type = ZERO_FP32;
    if (rounds) some.ldc = r->cols;
    multiply(math, &some, 0, cols);
    for (int64_t row = 0; rounds && row < g->m; row++)
        zero_convert(ZERO_FP32, g->c_type, cols, r->c + row * r->cols,
                     zero_type_to(g->c_type, c, row * g->ldc));
}

static void multiply_16_bits(const zero_math *math, const void *arg, int64_t first,
                             int64_t end)
{
    const zero_gemm *g = arg;
    const room r = room_of(math, g, end - first);
    for (int64_t i = 0; i < g->m; i += r.rows) {
        zero_gemm some = *g;
        some.m = zero_min(r.rows, g->m - i);
        for (int64_t row = 0; row < some.m; row++)
            zero_convert(g->a_type, ZERO_FP32, g->k, zero_gemm_a(g, i + row, 0),
                         r.a + row * g->k);
        for (int64_t j = first; j < end; j += r.cols)
            multiply_widened(math, &some, i, j, zero_min(r.cols, end - j), &r);
    }
}

bool zero_cpu_few_rows(const zero_math *math, const zero_gemm *g)
{
    if (!g->few_rows || g->transpose_a || g->accumulate) return false;
    if (g->slices > 1 && columns_at_a_time(g) < LINE) return false;
    /* The partial sums of a slice would have to go on from part to part. */
    if (g->transpose_b && g->slices > 0 && g->slice_parts > 1) return false;
    const bool is_widened = g->a_type != ZERO_FP32 || g->c_type != ZERO_FP32;
    if (is_widened && g->k > MOST_K) return false;
    zero_team_share(math, g->n, LINE, is_widened ? multiply_16_bits : multiply, g);
    return true;
}
