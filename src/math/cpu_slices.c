#include "math/cpu_slices.h"

#include "math/slices.h"

#define LEVELS     7 /* of the tree over a group, and a tile for its sum */
#define MOST_DEPTH 32
#define MOST_LANES 32 /* of a panel */

/* How a sum meets what is in its array. */
typedef enum {
    DEFINE,  /* nothing is there */
    ADD,     /* the whole sum is added, rounded once */
    CONTINUE /* the next block of k of the same slice */
} how;

/* Rows [i, i + m) and columns [j, j + n) of c, by slices first .. first + count - 1: of
 * each the numbers [p, p + k), which are all of it but for a slice without a group. */
typedef struct {
    const zero_packed_kernels *kernels;
    const zero_gemm *g;
    const zero_slices_plan *plan;
    int64_t i, j, m, n, p, k;
    int first, count;
    char *a, *b;    /* packed: slice by slice, block by block of k, panel by panel */
    float *buffers; /* [plan->buffers][block_m, width] */
    int64_t left;   /* the first column of the buffers */
} work;

/* An array that holds columns from t->left on of rows from t->i on. */
typedef struct {
    float *at;
    int64_t stride;
} array;

/* ---- packing ---- */

typedef void pack_call(const zero_operand *x, int64_t lanes, int64_t k, void *out);

/* One factor: all its lanes of a block, and where k = 0 is. */
typedef struct {
    zero_operand x;
    int64_t lanes, panel; /* lanes of a panel */
    pack_call *pack;
} factor;

static const void *number_at(const factor *f, int64_t lane, int64_t place)
{
    const zero_operand *x = &f->x;
    int64_t at = x->along_k ? lane * x->stride + place : place * x->stride + lane;
    return zero_type_at(x->type, x->data, at);
}

/* Up to `depth` numbers, from p of a slice on, which lie in several pieces. */
static void pack_across(const work *t, const factor *f, int slice, int64_t p, int64_t k,
                        const zero_operand *to, char *out)
{
    const int64_t depth = t->kernels->depth;
    const size_t size = zero_type_size(f->x.type);
    float few[MOST_LANES * MOST_DEPTH]; /* lanes x depth, of any type */
    for (int64_t l = 0; l < f->lanes; l += f->panel) {
        const int64_t lanes = zero_min(f->panel, f->lanes - l);
        for (int64_t q = 0; q < k; q++) {
            int64_t run, place = zero_slices_place(t->g, slice, p + q, &run);
            for (int64_t r = 0; r < lanes; r++)
                memcpy((char *)few + size * (size_t)(r * depth + q),
                       number_at(f, l + r, place), size);
        }
        zero_operand x = {few, f->x.type, depth, true, to->panel_k, to->panel_at};
        f->pack(&x, lanes, k, out);
        out += (size_t)(f->panel * to->panel_k) * zero_type_size(t->kernels->type);
    }
}

/* A block of k: numbers p .. p + k - 1 of a slice, in runs that lie together. */
static void pack_block(const work *t, const factor *f, int slice, int64_t p, int64_t k,
                       char *out)
{
    const int64_t depth = t->kernels->depth;
    int64_t run;
    for (int64_t at = 0; at < k; at += run) {
        zero_operand x = f->x;
        x.panel_k = zero_round_up(k, depth), x.panel_at = at;
        const int64_t place = zero_slices_place(t->g, slice, p + at, &run);
        run = zero_min(run, k - at);
        if (run < k - at) run = run / depth * depth;
        if (run > 0) {
            x.data = number_at(f, 0, place);
            f->pack(&x, f->lanes, run, out);
        } else {
            run = zero_min(depth, k - at);
            pack_across(t, f, slice, p + at, run, &x, out);
        }
    }
}

static void pack(const work *t, const factor *f, char *out)
{
    const size_t lane =
        zero_type_size(t->kernels->type) * (size_t)zero_round_up(f->lanes, f->panel);
    for (int s = 0; s < t->count; s++)
        for (int64_t at = 0; at < t->k; at += t->plan->step) {
            int64_t k = zero_min(t->plan->step, t->k - at);
            pack_block(t, f, t->first + s, t->p + at, k, out);
            out += lane * (size_t)zero_round_up(k, t->kernels->depth);
        }
}

static void pack_a(const work *t)
{
    const zero_gemm *g = t->g;
    const factor f = {
        .x = {.data = zero_gemm_a(g, t->i, 0),
              .type = g->a_type,
              .stride = g->lda,
              .along_k = !g->transpose_a},
        .lanes = t->m,
        .panel = t->kernels->rows,
        .pack = t->kernels->pack_a,
    };
    pack(t, &f, t->a);
}

static void pack_b(const work *t)
{
    const zero_gemm *g = t->g;
    const factor f = {
        .x = {.data = zero_gemm_b(g, 0, t->j),
              .type = g->b_type,
              .stride = g->ldb,
              .along_k = g->transpose_b},
        .lanes = t->n,
        .panel = t->kernels->cols,
        .pack = t->kernels->pack_b,
    };
    pack(t, &f, t->b);
}

/* ---- tiles ---- */

/* A tile of c: its first row and column within the packed blocks. */
typedef struct {
    const work *t;
    int64_t i, j;
    float (*levels)[ZERO_PACKED_TILE];
} tile;

static bool adds_without_a_pass(const work *t)
{
    return t->kernels->adds_sums && t->k <= t->plan->step;
}

/* A slice of the group: its blocks of k, one after another. */
static void sum_slice(const tile *x, int slice, bool add, float *c, int64_t ldc)
{
    const work *t = x->t;
    const int64_t depth = t->kernels->depth, whole = zero_round_up(t->k, depth);
    const size_t size = zero_type_size(t->kernels->type);
    const int64_t m = zero_round_up(t->m, t->kernels->rows);
    const int64_t n = zero_round_up(t->n, t->kernels->cols);
    for (int64_t at = 0; at < whole; at += t->plan->step) {
        const int64_t k = zero_min(t->plan->step, whole - at), from = slice * whole + at;
        t->kernels->multiply(k, t->a + size * (size_t)(from * m + x->i * k),
                             t->b + size * (size_t)(from * n + x->j * k), add, c, ldc);
        add = true;
    }
}

/* c = the tree over slices first .. first + count - 1 of the group. */
static void sum_group(const tile *x, int first, int count, int level, float *c, int64_t ldc)
{
    const work *t = x->t;
    if (count == 1) {
        sum_slice(x, first, false, c, ldc);
        return;
    }
    const int left = (int)zero_tree_left(count), right = count - left;
    sum_group(x, first, left, level, c, ldc);
    if (right == 1 && adds_without_a_pass(t)) {
        sum_slice(x, first + left, true, c, ldc);
        return;
    }
    sum_group(x, first + left, right, level + 1, x->levels[level], t->kernels->cols);
    t->kernels->add(x->levels[level], c, ldc);
}

/* The tile of c is needed after the sums: this fetches it to the cache while they are
 * made. */
static void fetch(const tile *x, const float *c, int64_t ldc)
{
    const zero_packed_kernels *kernels = x->t->kernels;
    for (int64_t r = 0; r < kernels->rows; r++, c += ldc)
        for (int64_t j = 0; j < kernels->cols; j += ZERO_SLICES_LINE / 4)
            __builtin_prefetch(c + j, 1);
}

static void sum_tile(const tile *x, how meets, float *c, int64_t ldc)
{
    const work *t = x->t;
    if (meets == DEFINE) {
        sum_group(x, 0, t->count, 0, c, ldc);
    } else if (meets == CONTINUE || (t->count == 1 && adds_without_a_pass(t))) {
        sum_slice(x, 0, true, c, ldc);
    } else {
        fetch(x, c, ldc);
        sum_group(x, 0, t->count, 1, x->levels[0], t->kernels->cols);
        t->kernels->add(x->levels[0], c, ldc);
    }
}

/* A tile of which only rows x cols belong to c. */
static void sum_edge(const tile *x, how meets, float *c, int64_t ldc, int64_t rows,
                     int64_t cols)
{
    const int64_t whole = x->t->kernels->cols;
    float edge[ZERO_PACKED_TILE] = {0};
    const size_t bytes = (size_t)cols * sizeof *c;
    if (meets != DEFINE)
        for (int64_t r = 0; r < rows; r++) memcpy(edge + r * whole, c + r * ldc, bytes);
    sum_tile(x, meets, edge, whole);
    for (int64_t r = 0; r < rows; r++) memcpy(c + r * ldc, edge + r * whole, bytes);
}

static void multiply(const work *t, how meets, const array *out)
{
    const zero_packed_kernels *kernels = t->kernels;
    float levels[LEVELS][ZERO_PACKED_TILE] __attribute__((aligned(64)));
    kernels->begin();
    for (int64_t i = 0; i < t->m; i += kernels->rows) {
        for (int64_t j = 0; j < t->n; j += kernels->cols) {
            const tile x = {t, i, j, levels};
            float *c = out->at + i * out->stride + t->j - t->left + j;
            int64_t rows = zero_min(kernels->rows, t->m - i);
            int64_t cols = zero_min(kernels->cols, t->n - j);
            if (rows == kernels->rows && cols == kernels->cols)
                sum_tile(&x, meets, c, out->stride);
            else
                sum_edge(&x, meets, c, out->stride, rows, cols);
        }
    }
    kernels->end();
}

/* ---- the tree over groups ---- */

/* out = the tree over slices first .. first + count - 1, or += that of one group. */
static void sum_slices(const zero_math *math, work *t, int first, int count, int64_t end,
                       how meets, const array *out)
{
    const zero_slices_plan *plan = t->plan;
    if (count <= zero_max(plan->group, 1)) {
        t->first = first, t->count = count;
        const int64_t slice = t->plan->slice;
        const int64_t step = t->plan->group ? slice : t->plan->step;
        for (t->p = 0; t->p < slice; t->p += step) {
            t->k = zero_min(step, slice - t->p);
            /* Columns [t->left, end) of the sum over some slices, of numbers [p, p + k) of
             * each. */
            pack_a(t);
            for (t->j = t->left; t->j < end; t->j += t->plan->block_n) {
                t->n = zero_min(t->plan->block_n, end - t->j);
                pack_b(t);
                multiply(t, t->p > 0 ? CONTINUE : meets, out);
                zero_math_poll(math);
            }
        }
        return;
    }
    const int left = (int)zero_tree_left(count), right = count - left;
    sum_slices(math, t, first, left, end, DEFINE, out);
    if (right <= plan->group) {
        sum_slices(math, t, first + left, right, end, ADD, out);
        return;
    }
    const array buffer = {t->buffers, plan->width};
    t->buffers += plan->block_m * plan->width;
    sum_slices(math, t, first + left, right, end, DEFINE, &buffer);
    t->buffers -= plan->block_m * plan->width;
    for (int64_t r = 0; r < t->m; r++) {
        float *c = out->at + r * out->stride;
        const zero_tree_term terms[] = {{c, ZERO_FP32, 0, 1},
                                        {buffer.at + r * buffer.stride, ZERO_FP32, 1, 1}};
        zero_tree_sum(2, terms, end - t->left, ZERO_FP32, c, false);
    }
    zero_math_poll(math);
}

/* Columns [t->left, end) of this block of rows. A c of 16 bits is summed in the first
 * buffer. */
static void sum_columns(const zero_math *math, work *t, int first, int count, int64_t end,
                        how meets)
{
    const zero_gemm *g = t->g;
    if (g->c_type == ZERO_FP32) {
        const array c = {zero_gemm_c(g, t->i, t->left), g->ldc};
        sum_slices(math, t, first, count, end, meets, &c);
        return;
    }
    const array sums = {math->scratch, t->plan->width};
    sum_slices(math, t, first, count, end, meets, &sums);
    /* Rounds the sums of this block of rows to c. */
    for (int64_t r = 0; r < t->m; r++)
        zero_convert(ZERO_FP32, g->c_type, end - t->left, sums.at + r * sums.stride,
                     zero_gemm_c(g, t->i + r, t->left));
}

/* All rows and columns. */
static void run(const zero_math *math, work *t, int first, int count, how meets)
{
    const zero_slices_plan *plan = t->plan;
    const zero_gemm *g = t->g;
    const size_t size = zero_type_size(t->kernels->type);
    const int64_t buffer = plan->block_m * plan->width;
    assert(plan->packed > 0 && "too many slices for the scratch");
    t->buffers = math->scratch + (g->c_type == ZERO_FP32 ? 0 : buffer);
    t->a = (char *)(math->scratch + plan->buffers * buffer);
    t->b = t->a + zero_round_up_size(size * (size_t)(plan->block_m * plan->packed),
                                     ZERO_SLICES_LINE);
    for (t->i = 0; t->i < g->m; t->i += plan->block_m) {
        t->m = zero_min(plan->block_m, g->m - t->i);
        for (t->left = 0; t->left < g->n; t->left += plan->width)
            sum_columns(math, t, first, count, zero_min(t->left + plan->width, g->n),
                        meets);
    }
}

/* The first `count` slices. */
static void sum_first(const zero_math *math, work *t, int count)
{
    zero_slices_plan plan;
    const int left = zero_slices_split(t->kernels, t->g, count, &plan);
    if (left > 0) sum_first(math, t, left);
    t->plan = &plan;
    run(math, t, left, count - left, left > 0 ? ADD : DEFINE);
}

void zero_cpu_packed_slices(const zero_math *math, const zero_packed_kernels *kernels,
                            const zero_gemm *g)
{
    assert(kernels->rows <= MOST_LANES && kernels->cols <= MOST_LANES &&
           kernels->depth <= MOST_DEPTH);
    zero_slices_check(g);
    work t = {.kernels = kernels, .g = g};
    sum_first(math, &t, g->slices);
}
