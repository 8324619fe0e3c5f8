/* With P the probabilities and D = rowsum(dO * O), Dao et al., FlashAttention, arXiv:2205.14135,
 * algorithm 4:
 *
 *     dV = P' dO     dS = P * (dO V' - D)     dQ = dS K     dK = dS' Q
 *
 * A block of queries has its P and dS first, panel by panel, then adds to dV and dK of all the
 * keys that it sees. These stay in the workspace until the head is done. With dropout's mask M,
 * P in dV is P * M, and dO V' in dS is M * (dO V'). */
#include "math/cpu_attention.h"

#include <string.h>

#include "math/cpu_head.h"

/* From the workspace. */
typedef struct {
    float *key_rows, *value_rows, *keys; /* packed by rows, by channels */
    float *dk, *dv;                      /* [T, width], whole panels */
    float *dys, *queries;                /* a block's, packed by channels */
    float *p, *ds;                       /* a block's, [block, stride] */
    float *q, *dy, *dq; /* of one panel: [panel, C/H], .., [panel, width] */
    float *mask;        /* [T] */
} room;

static room take_room(const zero_head *k, float *work)
{
    const int64_t rows = k->rows;
    room r;
    r.key_rows = zero_head_take(&work, k->stride * k->width);
    r.value_rows = zero_head_take(&work, k->stride * k->width);
    r.keys = zero_head_take(&work, k->stride * k->width);
    r.dk = zero_head_take(&work, k->stride * k->width);
    r.dv = zero_head_take(&work, k->stride * k->width);
    r.dys = zero_head_take(&work, k->block * k->width);
    r.queries = zero_head_take(&work, k->block * k->width);
    r.p = zero_head_take(&work, k->block * k->stride);
    r.ds = zero_head_take(&work, k->block * k->stride);
    r.q = zero_head_take(&work, rows * k->size);
    r.dy = zero_head_take(&work, rows * k->size);
    r.dq = zero_head_take(&work, rows * k->width);
    r.mask = zero_head_take(&work, k->a->T);
    return r;
}

/* Scores become probabilities, and dO V' in ds the gradient of scores. */
static void softmax_panel(const zero_head *k, const room *w, const zero_cpu_scores *t,
                          float *p, float *ds)
{
    const zero_attention *a = k->a;
    const bool dropout = a->dropout.p > 0.0f;
    float mean[ZERO_SCORE_ROWS]; /* D */
    k->kernels->dots(t->rows, k->size, w->dy, k->size,
                     a->out + zero_head_in_out(k, t->first), a->C, mean);
    k->kernels->softmax_again(t, a->lse + zero_head_in_lse(k, t->first), p);
    for (int64_t r = 0; dropout && r < t->rows; r++)
        zero_head_drop(k, t->first + r, w->mask, ds + r * t->stride);
    k->kernels->softmax_backward(t, mean, p, ds);
    for (int64_t r = 0; dropout && r < t->rows; r++)
        zero_head_drop(k, t->first + r, w->mask, p + r * t->stride);
}

/* P, dS and dQ of one panel of queries, of which the first n exist. */
static void backward_panel(const zero_head *k, const room *w, int64_t first, int64_t n,
                           float *p, float *ds)
{
    const zero_attention *a = k->a;
    const int64_t C = a->C, end = first + k->rows, keys = zero_min(end, a->T);
    const zero_cpu_scores t = {n, first, end, k->stride};
    zero_head_copy(k, a->qkv + zero_head_in_qkv(k, first, ZERO_QUERY), 3 * C, n,
                   k->scale_base2, w->q);
    zero_head_copy(k, a->dout + zero_head_in_out(k, first), C, n, 1.0f, w->dy);
    zero_head_scores(k, w->q, w->key_rows, keys, p);
    zero_head_scores(k, w->dy, w->value_rows, keys, ds);
    softmax_panel(k, w, &t, p, ds);
    zero_head_mix(k, ds, w->keys, keys, w->dq);
    for (int64_t r = 0; r < n; r++)
        k->kernels->scale(k->size, k->scale, w->dq + r * k->width,
                          a->dqkv + zero_head_in_qkv(k, first + r, ZERO_QUERY));
}

/* out[T, width] (+)= weight[n, stride]' y, of a block of n queries from `first` on. A panel of
 * keys meets the queries from its own diagonal on: those of its own block are its first. */
static void spread(const zero_head *k, int64_t first, int64_t n, const float *weight,
                   const float *y, float *out)
{
    for (int64_t j = 0; j < first + n; j += k->rows) {
        const int64_t from = j > first ? j - first : 0;
        const zero_left a = {weight + from * k->stride + j, 1, k->stride, n - from};
        zero_head_multiply(k, &a, k->size, y, from, n, j < first, out + j * k->width,
                           k->width);
    }
}

static void backward_block(const zero_head *k, const room *w, int64_t first)
{
    const zero_attention *a = k->a;
    const int64_t C = a->C, n = zero_min(k->block, a->T - first);
    const int64_t step = k->rows;
    for (int64_t r = 0; r < n; r += step)
        backward_panel(k, w, first + r, zero_min(step, n - r), w->p + r * k->stride,
                       w->ds + r * k->stride);
    zero_head_pack_channels(k, a->dout + zero_head_in_out(k, first), C, n, w->dys);
    zero_head_pack_channels(k, a->qkv + zero_head_in_qkv(k, first, ZERO_QUERY), 3 * C, n,
                            w->queries);
    spread(k, first, n, w->p, w->dys, w->dv);
    spread(k, first, n, w->ds, w->queries, w->dk);
}

/* Scores were scaled through the queries, but dK was computed from unscaled ones. */
static void store_keys_and_values(const zero_head *k, const room *w)
{
    for (int64_t t = 0; t < k->a->T; t++) {
        float *dk = k->a->dqkv + zero_head_in_qkv(k, t, ZERO_KEY);
        float *dv = k->a->dqkv + zero_head_in_qkv(k, t, ZERO_VALUE);
        k->kernels->scale(k->size, k->scale, w->dk + t * k->width, dk);
        memcpy(dv, w->dv + t * k->width, (size_t)k->size * sizeof *dv);
    }
}

static void backward(const zero_head *k, float *work)
{
    const int64_t T = k->a->T, C = k->a->C;
    const float *keys = k->a->qkv + zero_head_in_qkv(k, 0, ZERO_KEY);
    const float *values = k->a->qkv + zero_head_in_qkv(k, 0, ZERO_VALUE);
    const room w = take_room(k, work);
    zero_head_pack_rows(k, keys, 3 * C, T, w.key_rows);
    zero_head_pack_rows(k, values, 3 * C, T, w.value_rows);
    zero_head_pack_channels(k, keys, 3 * C, T, w.keys);
    for (int64_t first = 0; first < T; first += k->block) {
        k->packed->begin();
        backward_block(k, &w, first);
        k->packed->end();
        zero_math_poll(k->math);
    }
    store_keys_and_values(k, &w);
}

void zero_cpu_attention_backward(const zero_math *math, const zero_attention *a)
{
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t h = 0; h < a->H; h++) {
            float *rest = a->work;
            zero_head k = zero_head_at(math, a, b, h, &rest);
            backward(&k, rest);
        }
}
