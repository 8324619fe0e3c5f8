/* cpu_attention_backward.c - Dao et al., FlashAttention, arXiv:2205.14135, algorithm 4.
 * With P the probabilities and D = rowsum(dO * O):
 *
 *     dV = P' dO     dS = P * (dO V' - D)     dQ = dS K     dK = dS' Q
 *
 * A block of queries computes its P and dS first, panel by panel, then adds to dV and dK of
 * all keys that it sees. dV and dK stay in the workspace until all heads of their key head
 * are done. With
 * dropout's mask M, P in dV is P * M, and dO V' in dS is M * (dO V'). */
#include "math/cpu.h"

#include "math/cpu_head.h"

/* Parts of the workspace. */
typedef struct {
    float *key_rows, *value_rows, *keys; /* packed by rows, by channels */
    float *dk, *dv;                      /* [T, width], whole panels */
    float *dys, *queries;                /* a block's, packed by channels */
    float *p, *ds;                       /* a block's, [block, stride] */
    float *q, *dy, *dq; /* one panel's: [panel, D], [panel, D], [panel, width] */
    float *mask;        /* [T] */
} workspace;

static workspace take_workspace(const zero_head *head, float *work)
{
    const int64_t rows = head->rows;
    workspace r;
    r.key_rows = zero_head_take(&work, head->stride * head->width);
    r.value_rows = zero_head_take(&work, head->stride * head->width);
    r.keys = zero_head_take(&work, head->stride * head->width);
    r.dk = zero_head_take(&work, head->stride * head->width);
    r.dv = zero_head_take(&work, head->stride * head->width);
    r.dys = zero_head_take(&work, head->block * head->width);
    r.queries = zero_head_take(&work, head->block * head->width);
    r.p = zero_head_take(&work, head->block * head->stride);
    r.ds = zero_head_take(&work, head->block * head->stride);
    r.q = zero_head_take(&work, rows * head->size);
    r.dy = zero_head_take(&work, rows * head->size);
    r.dq = zero_head_take(&work, rows * head->width);
    r.mask = zero_head_take(&work, head->a->T);
    return r;
}

/* Query t->first + r alone, which has one mask for P and for its gradient. */
static void drop_row(const zero_head *head, const workspace *w, const zero_cpu_scores *t,
                     int64_t r, float mean, float *p, float *ds)
{
    const zero_cpu_scores row = {1, t->first + r, t->len, t->stride};
    zero_head_mask(head, row.first, w->mask);
    head->kernels->multiply(row.first + 1, ds, w->mask, ds);
    head->kernels->softmax_backward(&row, &mean, p, ds);
    head->kernels->multiply(row.first + 1, p, w->mask, p);
}

/* Turns scores in p into probabilities, and dO V' in ds into the gradient of scores. */
static void softmax_panel(const zero_head *head, const workspace *w,
                          const zero_cpu_scores *t, float *p, float *ds)
{
    const zero_attention *a = head->a;
    float mean[ZERO_SCORE_ROWS]; /* D */
    const zero_cpu_pieces out = {.rows = t->rows,
                                 .n = head->size,
                                 .x = zero_head_out(head, t->first),
                                 .x_type = a->rows_type,
                                 .x_stride = a->H * a->D,
                                 .x_rows = a->T - t->first};
    head->kernels->dots(&out, w->dy, head->size, mean);
    head->kernels->softmax_again(t, a->lse + zero_head_in_lse(head, t->first), p);
    if (a->dropout.p == 0.0f) {
        head->kernels->softmax_backward(t, mean, p, ds);
        return;
    }
    for (int64_t r = 0; r < t->rows; r++)
        drop_row(head, w, t, r, mean[r], p + r * t->stride, ds + r * t->stride);
}

/* P, dS and dQ of one panel of queries, of which the first n exist. */
static void backward_panel(const zero_head *head, const workspace *w, int64_t first,
                           int64_t n, float *p, float *ds)
{
    const zero_attention *a = head->a;
    const int64_t end = first + head->rows, keys = zero_min(end, a->T);
    const zero_cpu_scores t = {n, first, end, head->stride};
    zero_head_copy(head, zero_head_row(head, &a->q, head->h, first), a->q.stride, first, n,
                   head->scale_base2, w->q);
    zero_head_copy(head, zero_head_dout(head, first), a->H * a->D, first, n, 1.0f, w->dy);
    zero_head_scores(head, w->q, n, w->key_rows, keys, p);
    zero_head_scores(head, w->dy, n, w->value_rows, keys, ds);
    softmax_panel(head, w, &t, p, ds);
    zero_head_mix(head, ds, n, w->keys, keys, w->dq);
    zero_head_store(head, w->dq, first, n, head->scale, NULL,
                    zero_head_row(head, &a->dq, head->h, first), a->dq.stride);
}

/* out[T, width] (+)= weight[n, stride]' y, for the block of n queries from `first` on. A
 * panel of keys meets the queries from its diagonal on; its first are those of the same
 * block, of the first head. */
static void spread(const zero_head *head, int64_t first, int64_t n, const float *weight,
                   const float *y, float *out)
{
    const bool adds = head->h > head->k * (head->a->H / head->a->K);
    for (int64_t j = 0; j < first + n; j += head->rows) {
        const int64_t from = j > first ? j - first : 0;
        const zero_left a = {weight + from * head->stride + j, first + n - j, 1,
                             head->stride, n - from};
        zero_head_multiply(head, &a, head->size, y, from, n, adds || j < first,
                           out + j * head->width, head->width);
    }
}

static void backward_block(const zero_head *head, const workspace *w, int64_t first)
{
    const zero_attention *a = head->a;
    const int64_t n = zero_min(head->block, a->T - first);
    const int64_t step = head->rows;
    for (int64_t r = 0; r < n; r += step)
        backward_panel(head, w, first + r, zero_min(step, n - r), w->p + r * head->stride,
                       w->ds + r * head->stride);
    zero_head_pack_channels(head, zero_head_dout(head, first), a->H * a->D, n, w->dys);
    zero_head_pack_channels(head, zero_head_row(head, &a->q, head->h, first), a->q.stride,
                            n, w->queries);
    spread(head, first, n, w->p, w->dys, w->dv);
    spread(head, first, n, w->ds, w->queries, w->dk);
}

static void backward(const zero_head *head, float *work)
{
    const zero_attention *a = head->a;
    const int64_t T = a->T;
    const void *keys = zero_head_row(head, &a->k, head->k, 0);
    const void *values = zero_head_row(head, &a->v, head->k, 0);
    const workspace w = take_workspace(head, work);
    zero_head_pack_rows(head, keys, a->k.stride, T, w.key_rows);
    zero_head_pack_rows(head, values, a->v.stride, T, w.value_rows);
    zero_head_pack_channels(head, keys, a->k.stride, T, w.keys);
    zero_head of = *head;
    for (int64_t n = a->H / a->K; n > 0; n--, of.h++)
        for (int64_t first = 0; first < T; first += head->block) {
            head->packed->begin();
            backward_block(&of, &w, first);
            head->packed->end();
            zero_math_poll(head->math);
        }
    /* Scores were scaled through the queries, but dK was computed from unscaled
     * ones. */
    zero_head_store(head, w.dk, 0, T, head->scale, NULL,
                    zero_head_row(head, &a->dk, head->k, 0), a->dk.stride);
    zero_head_store(head, w.dv, 0, T, 1.0f, NULL, zero_head_row(head, &a->dv, head->k, 0),
                    a->dv.stride);
}

void zero_cpu_attention_backward(const zero_math *math, const zero_attention *a)
{
    zero_heads_run(math, a, zero_cpu_attention_workspace(a), backward);
}
