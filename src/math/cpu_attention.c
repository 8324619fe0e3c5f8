/* Forward: Dao et al., FlashAttention, arXiv:2205.14135, algorithm 1, without its tiling over
 * keys. Exponentials are not normalised; rows of the result are divided by their sums, which is
 * C/H numbers instead of T. */
#include "math/cpu_attention.h"

#include "math/cpu_head.h"

#define BUFFERS 14 /* that backward takes; each starts a line */

int64_t zero_cpu_attention_workspace(const zero_attention *a)
{
    const int64_t width = zero_round_up(a->C / a->H, ZERO_PANEL_COLS);
    const int64_t T = zero_head_stride(a->T);
    return 5 * T * width + (2 * ZERO_HEAD_BLOCK + ZERO_SCORE_ROWS / 2) * (T + width) +
           3 * ZERO_SCORE_ROWS * width + T + BUFFERS * ZERO_HEAD_LINE;
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
    r.mask = zero_head_take(&work, k->a->T);
    return r;
}

/* One panel of queries, of which the first n exist. */
static void forward_panel(const zero_head *k, const room *w, int64_t first, int64_t n)
{
    const zero_attention *a = k->a;
    const int64_t end = first + k->rows, keys = zero_min(end, a->T);
    const zero_cpu_scores t = {n, first, end, k->stride};
    float over_sum[ZERO_SCORE_ROWS];
    zero_head_copy(k, a->qkv + zero_head_in_qkv(k, first, ZERO_QUERY), 3 * a->C, n,
                   k->scale_base2, w->q);
    zero_head_scores(k, w->q, w->keys, keys, w->p);
    k->kernels->softmax(&t, w->p, a->lse + zero_head_in_lse(k, first), over_sum);
    if (a->dropout.p > 0.0f)
        for (int64_t r = 0; r < n; r++)
            zero_head_drop(k, first + r, w->mask, w->p + r * k->stride);
    zero_head_mix(k, w->p, w->values, keys, w->y);
    for (int64_t r = 0; r < n; r++)
        k->kernels->scale(k->size, over_sum[r], w->y + r * k->width,
                          a->out + zero_head_in_out(k, first + r));
}

/* The panels of one block, between two polls. */
static void forward_block(const zero_head *k, const room *w, int64_t first)
{
    const int64_t end = zero_min(first + k->block, k->a->T);
    k->packed->begin();
    for (; first < end; first += k->rows)
        forward_panel(k, w, first, zero_min(k->rows, end - first));
    k->packed->end();
}

static void forward(const zero_head *k, float *work)
{
    const int64_t T = k->a->T, stride = 3 * k->a->C;
    const float *qkv = k->a->qkv;
    const room w = take_room(k, work);
    zero_head_pack_rows(k, qkv + zero_head_in_qkv(k, 0, ZERO_KEY), stride, T, w.keys);
    zero_head_pack_channels(k, qkv + zero_head_in_qkv(k, 0, ZERO_VALUE), stride, T,
                            w.values);
    for (int64_t first = 0; first < T; first += k->block) {
        forward_block(k, &w, first);
        zero_math_poll(k->math);
    }
}

void zero_cpu_attention(const zero_math *math, const zero_attention *a)
{
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t h = 0; h < a->H; h++) {
            float *rest = a->work;
            zero_head k = zero_head_at(math, a, b, h, &rest);
            forward(&k, rest);
        }
}
