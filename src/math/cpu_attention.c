/* cpu_attention.c - the forward pass: Dao et al., FlashAttention, arXiv:2205.14135,
 * algorithm 1, without its tiling over keys. Exponentials stay as they are, and rows of the
 * result are divided by their sums: D numbers instead of T. */
#include "math/cpu.h"

#include "math/cpu_head.h"

#define BUFFERS 14 /* backward takes at most that many; each starts a cache line */

int64_t zero_cpu_attention_workspace(const zero_attention *a)
{
    const int64_t width = zero_round_up(a->D, ZERO_PANEL_COLS);
    const int64_t T = zero_head_stride(a->T);
    return 5 * T * width + (2 * ZERO_HEAD_BLOCK + ZERO_SCORE_ROWS / 2) * (T + width) +
           3 * ZERO_SCORE_ROWS * width + T + BUFFERS * ZERO_HEAD_LINE;
}

/* Parts of the workspace. */
typedef struct {
    float *keys, *values; /* packed by rows, by channels */
    float *q, *p, *y;     /* one panel's: [panel, D], [panel, stride], [panel, width] */
    float *mask;          /* [T] */
} workspace;

static workspace take_workspace(const zero_head *head, float *work)
{
    const int64_t rows = head->rows;
    workspace r;
    r.keys = zero_head_take(&work, head->stride * head->width);
    r.values = zero_head_take(&work, head->stride * head->width);
    r.q = zero_head_take(&work, rows * head->size);
    r.p = zero_head_take(&work, rows * head->stride);
    r.y = zero_head_take(&work, rows * head->width);
    r.mask = zero_head_take(&work, head->a->T);
    return r;
}

/* One panel of queries, of which the first n exist. */
static void forward_panel(const zero_head *head, const workspace *w, int64_t first,
                          int64_t n)
{
    const zero_attention *a = head->a;
    const int64_t end = first + head->rows, keys = zero_min(end, a->T);
    const zero_cpu_scores t = {n, first, end, head->stride};
    float over_sum[ZERO_SCORE_ROWS];
    zero_head_copy(head, zero_head_row(head, &a->q, head->h, first), a->q.stride, first, n,
                   head->scale_base2, w->q);
    zero_head_scores(head, w->q, n, w->keys, keys, w->p);
    head->kernels->softmax(&t, w->p, a->lse + zero_head_in_lse(head, first), over_sum);
    for (int64_t r = 0; a->dropout.p > 0.0f && r < n; r++) {
        float *row = w->p + r * head->stride;
        zero_head_mask(head, first + r, w->mask);
        head->kernels->multiply(first + r + 1, row, w->mask, row);
    }
    zero_head_mix(head, w->p, n, w->values, keys, w->y);
    zero_head_store(head, w->y, first, n, 1.0f, over_sum, zero_head_out(head, first),
                    a->H * a->D);
}

/* The panels of one block, between two polls. */
static void forward_block(const zero_head *head, const workspace *w, int64_t first)
{
    const int64_t end = zero_min(first + head->block, head->a->T);
    head->packed->begin();
    for (; first < end; first += head->rows)
        forward_panel(head, w, first, zero_min(head->rows, end - first));
    head->packed->end();
}

static void forward(const zero_head *head, float *work)
{
    const zero_attention *a = head->a;
    const workspace w = take_workspace(head, work);
    zero_head_pack_rows(head, zero_head_row(head, &a->k, head->k, 0), a->k.stride, a->T,
                        w.keys);
    zero_head_pack_channels(head, zero_head_row(head, &a->v, head->k, 0), a->v.stride, a->T,
                            w.values);
    zero_head of = *head;
    for (int64_t n = a->H / a->K; n > 0; n--, of.h++)
        for (int64_t first = 0; first < a->T; first += head->block) {
            forward_block(&of, &w, first);
            zero_math_poll(head->math);
        }
}

void zero_cpu_attention(const zero_math *math, const zero_attention *a)
{
    zero_heads_run(math, a, zero_cpu_attention_workspace(a), forward);
}
