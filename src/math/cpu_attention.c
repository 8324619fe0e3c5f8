/* Forward, and what it shares with backward: Dao et al., FlashAttention, arXiv:2205.14135,
 * algorithm 1, without its tiling over keys. Exponentials stay as they are, and rows of the
 * result are divided by their sums: C/H numbers instead of T. */
#include "math/cpu_attention.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define LOG2_E  1.4426950408889634
#define LINE    16 /* floats */
#define BUFFERS 14 /* that backward takes; each starts a line */

/* From row to row of scores: whole panels of keys, and of queries on the diagonal. Never a
 * power of two, which would put all rows into the same lines of L1. */
static int64_t stride_of(int64_t T)
{
    return zero_round_up(T, ZERO_PANEL_COLS) + LINE;
}

int64_t zero_cpu_attention_workspace(const zero_attention *s)
{
    const int64_t width = zero_round_up(s->C / s->H, ZERO_PANEL_COLS), T = stride_of(s->T);
    return 5 * T * width + (2 * ZERO_HEAD_BLOCK + ZERO_HEAD_ROWS / 2) * (T + width) +
           3 * ZERO_HEAD_ROWS * width + T + BUFFERS * LINE;
}

/* Blocks of two panels in bf16, for whose tiles a sum over less is too short; of 48 queries in
 * fp32, which for T 2048 is 3 % faster than 96 and 10 than 192. */
static void choose_products(zero_head *k)
{
    const zero_packed_kernels *bf16 = k->math->bf16_products;
    const bool in_bf16 = k->s->in_bf16 && bf16 && bf16->multiply_part;
    k->panels = in_bf16 ? NULL : k->math->panels;
    k->packed = in_bf16 ? bf16 : &k->panels->packed;
    k->rows = k->packed->rows;
    k->block = in_bf16 ? 2 * k->rows : 48;
    assert(k->rows <= ZERO_HEAD_ROWS && k->block <= ZERO_HEAD_BLOCK);
    assert(k->block % k->rows == 0);
}

zero_head zero_head_at(const zero_math *math, const zero_attention *s, int64_t b, int64_t h,
                       float **work)
{
    assert(s->C % s->H == 0);
    zero_head k = {.math = math, .s = s, .b = b, .h = h};
    k.kernels = zero_cpu_chosen(math);
    choose_products(&k);
    k.size = s->C / s->H;
    k.width = zero_round_up(k.size, k.packed->cols);
    k.stride = stride_of(s->T);
    k.scale = (float)(1.0 / sqrt((double)k.size));
    k.scale_base2 = (float)(LOG2_E / sqrt((double)k.size));
    k.left = zero_head_take(work, ZERO_HEAD_ROWS / 2 * (k.stride + k.width));
    return k;
}

int64_t zero_head_in_qkv(const zero_head *k, int64_t t, zero_head_part part)
{
    return ((k->b * k->s->T + t) * 3 + (int64_t)part) * k->s->C + k->h * k->size;
}

int64_t zero_head_in_out(const zero_head *k, int64_t t)
{
    return (k->b * k->s->T + t) * k->s->C + k->h * k->size;
}

int64_t zero_head_in_lse(const zero_head *k, int64_t t)
{
    return (k->b * k->s->H + k->h) * k->s->T + t;
}

float *zero_head_take(float **work, int64_t n)
{
    const uintptr_t bytes = LINE * sizeof(float), at = (uintptr_t)*work;
    float *taken = *work + (bytes - at % bytes) % bytes / sizeof(float);
    *work = taken + n;
    return taken;
}

void zero_head_pack_rows(const zero_head *k, const float *x, int64_t stride, int64_t n,
                         void *out)
{
    zero_operand rows = {.data = x, .stride = stride, .along_k = true};
    k->packed->pack_b(&rows, n, k->size, out);
}

void zero_head_pack_channels(const zero_head *k, const float *x, int64_t stride, int64_t n,
                             void *out)
{
    zero_operand channels = {.data = x, .stride = stride};
    k->packed->pack_b(&channels, k->size, n, out);
}

void zero_head_copy(const zero_head *k, const float *x, int64_t stride, int64_t n,
                    float factor, float *out)
{
    for (int64_t r = 0; r < k->rows; r++, x += stride, out += k->size) {
        if (r < n)
            k->kernels->scale(k->size, factor, x, out);
        else
            memset(out, 0, (size_t)k->size * sizeof *out);
    }
}

/* Reads a where it is. Of the last panel perhaps only the left half is needed. */
static void multiply_fp32(const zero_head *k, const zero_left *a, int64_t n, const float *b,
                          int64_t b_k, bool add, float *c, int64_t ldc)
{
    const int64_t cols = k->packed->cols;
    for (int64_t j = 0; j < n; j += cols) {
        const float *panel = b + j * b_k;
        if (2 * (n - j) <= cols)
            k->panels->multiply_left(a->k, a->x, a->row, a->along, panel, add, c + j, ldc);
        else
            k->panels->multiply(a->k, a->x, a->row, a->along, panel, add, c + j, ldc);
    }
}

static void multiply_bf16(const zero_head *k, const zero_left *a, int64_t n,
                          const uint16_t *b, int64_t b_from, int64_t b_k, bool add,
                          float *c, int64_t ldc)
{
    const zero_packed_kernels *packed = k->packed;
    const int64_t depth = zero_round_up(b_k, packed->depth);
    zero_operand left = {.data = a->x, .along_k = a->along == 1};
    left.stride = left.along_k ? a->row : a->along;
    packed->pack_a(&left, k->rows, a->k, k->left);
    for (int64_t j = 0; j < n; j += packed->cols)
        packed->multiply_part(zero_round_up(a->k, packed->depth), k->left, b + j * depth,
                              b_from, depth, add, c + j, ldc);
}

void zero_head_multiply(const zero_head *k, const zero_left *a, int64_t n, const void *b,
                        int64_t b_from, int64_t b_k, bool add, float *c, int64_t ldc)
{
    if (k->panels)
        multiply_fp32(k, a, n, (const float *)b + b_from * k->packed->cols, b_k, add, c,
                      ldc);
    else
        multiply_bf16(k, a, n, b, b_from, b_k, add, c, ldc);
}

void zero_head_scores(const zero_head *k, const float *x, const void *y, int64_t n,
                      float *score)
{
    const zero_left a = {x, k->size, 1, k->size};
    zero_head_multiply(k, &a, n, y, 0, k->size, false, score, k->stride);
}

void zero_head_mix(const zero_head *k, const float *weight, const void *y, int64_t n,
                   float *out)
{
    const zero_left a = {weight, k->stride, 1, n};
    zero_head_multiply(k, &a, k->size, y, 0, k->s->T, false, out, k->width);
}

/* Row i of the mask is elements (h T + i) T ... of the sample's stream. */
void zero_head_drop(const zero_head *k, int64_t i, float *mask, float *row)
{
    const zero_dropout *d = &k->s->dropout;
    zero_rng stream = d->stream;
    stream.sample += (uint64_t)k->b;
    uint64_t first = (uint64_t)((k->h * k->s->T + i) * k->s->T);
    zero_rng_dropout(&stream, d->p, first, i + 1, mask);
    k->kernels->multiply(i + 1, row, mask, row);
}

/* From the workspace. */
typedef struct {
    float *keys, *values; /* packed by rows, by channels */
    float *q, *p, *y;     /* of one panel: [panel, C/H], [panel, stride], [panel, width] */
    float *mask;          /* [T] */
} room;

static room take_room(const zero_head *k, float *work)
{
    const int64_t rows = k->rows;
    room r;
    r.keys = zero_head_take(&work, k->stride * k->width);
    r.values = zero_head_take(&work, k->stride * k->width);
    r.q = zero_head_take(&work, rows * k->size);
    r.p = zero_head_take(&work, rows * k->stride);
    r.y = zero_head_take(&work, rows * k->width);
    r.mask = zero_head_take(&work, k->s->T);
    return r;
}

/* One panel of queries, of which n are there. */
static void forward_panel(const zero_head *k, const room *w, int64_t first, int64_t n,
                          const float *qkv, float *out, float *lse)
{
    const int64_t end = first + k->rows, keys = zero_least(end, k->s->T);
    const zero_cpu_panel t = {n, first, end, k->stride};
    float over_sum[ZERO_CPU_PANEL];
    zero_head_copy(k, qkv + zero_head_in_qkv(k, first, ZERO_QUERY), 3 * k->s->C, n,
                   k->scale_base2, w->q);
    zero_head_scores(k, w->q, w->keys, keys, w->p);
    k->kernels->softmax(&t, w->p, lse + zero_head_in_lse(k, first), over_sum);
    if (k->s->dropout.p > 0.0f)
        for (int64_t r = 0; r < n; r++)
            zero_head_drop(k, first + r, w->mask, w->p + r * k->stride);
    zero_head_mix(k, w->p, w->values, keys, w->y);
    for (int64_t r = 0; r < n; r++)
        k->kernels->scale(k->size, over_sum[r], w->y + r * k->width,
                          out + zero_head_in_out(k, first + r));
}

/* As many panels as a block has, between two polls. */
static void forward_block(const zero_head *k, const room *w, int64_t first,
                          const float *qkv, float *out, float *lse)
{
    const int64_t end = zero_least(first + k->block, k->s->T);
    k->packed->begin();
    for (; first < end; first += k->rows)
        forward_panel(k, w, first, zero_least(k->rows, end - first), qkv, out, lse);
    k->packed->end();
}

static void forward(const zero_head *k, const float *qkv, float *out, float *lse,
                    float *work)
{
    const int64_t T = k->s->T, stride = 3 * k->s->C;
    const room w = take_room(k, work);
    zero_head_pack_rows(k, qkv + zero_head_in_qkv(k, 0, ZERO_KEY), stride, T, w.keys);
    zero_head_pack_channels(k, qkv + zero_head_in_qkv(k, 0, ZERO_VALUE), stride, T,
                            w.values);
    for (int64_t first = 0; first < T; first += k->block) {
        forward_block(k, &w, first, qkv, out, lse);
        zero_math_poll(k->math);
    }
}

void zero_cpu_attention(const zero_math *math, const zero_attention *s, const float *qkv,
                        float *out, float *lse, float *work)
{
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t h = 0; h < s->H; h++) {
            float *rest = work;
            zero_head k = zero_head_at(math, s, b, h, &rest);
            forward(&k, qkv, out, lse, rest);
        }
}
