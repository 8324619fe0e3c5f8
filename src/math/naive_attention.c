/* naive_attention.c - attention one query at a time: scores, softmax, dropout, weighted
 * sum. */

#include "math/naive.h"

enum { QUERY, KEY, VALUE };

/* One query's view of a call: its head's channels of any position. */
typedef struct {
    const zero_attention *a;
    int64_t b, h, i, size; /* size = D */
} query;

/* Where position t's query, key or value, or its gradient, begins. */
static int64_t place(const query *q, const zero_heads *x, int64_t t, int part)
{
    const int64_t group = q->a->H / q->a->K;
    return zero_heads_at(x, q->b * q->a->T + t, part == QUERY ? q->h : q->h / group);
}

/* Channel c of position t's query, key or value. */
static double get(const query *q, int64_t t, int part, int64_t c)
{
    const zero_heads *const in[] = {&q->a->q, &q->a->k, &q->a->v};
    return zero_naive_get(q->a->rows_type, in[part]->x, place(q, in[part], t, part) + c);
}

static int64_t in_out(const query *q)
{
    return ((q->b * q->a->T + q->i) * q->a->H + q->h) * q->size;
}

/* Channel c of the gradient of this query's result. */
static double get_dy(const query *q, int64_t c)
{
    return zero_naive_get(q->a->rows_type, q->a->dout, in_out(q) + c);
}

static double score(const query *q, int64_t j)
{
    double sum = 0.0;
    for (int64_t c = 0; c < q->size; c++) sum += get(q, q->i, QUERY, c) * get(q, j, KEY, c);
    return 1.0 / sqrt((double)q->size) * sum;
}

/* p[j] = the probability of key j <= i; returns the log of the sum of exponentials. */
static double probabilities(const query *q, float *p)
{
    double most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j <= q->i; j++) most = fmax(most, score(q, j));
    for (int64_t j = 0; j <= q->i; j++) sum += exp(score(q, j) - most);
    for (int64_t j = 0; j <= q->i; j++) p[j] = (float)(exp(score(q, j) - most) / sum);
    return most + log(sum);
}

static void masks(const query *q, float *mask)
{
    const zero_dropout *d = &q->a->dropout;
    zero_rng stream = d->stream;
    stream.sample += (uint64_t)q->b;
    for (int64_t j = 0; j <= q->i; j++) {
        mask[j] = 1.0f;
        uint64_t element =
            (uint64_t)(((q->a->first_head + q->h) * q->a->T + q->i) * q->a->T + j);
        if (d->p > 0.0f) zero_rng_dropout_plain(&stream, d->p, element, 1, &mask[j]);
    }
}

static void forward(const query *q)
{
    float *p = q->a->work, *mask = p + q->a->T;
    q->a->lse[(q->b * q->a->H + q->h) * q->a->T + q->i] = (float)probabilities(q, p);
    masks(q, mask);
    for (int64_t c = 0; c < q->size; c++) {
        double sum = 0.0;
        for (int64_t j = 0; j <= q->i; j++) sum += p[j] * mask[j] * get(q, j, VALUE, c);
        zero_naive_set(q->a->rows_type, q->a->out, in_out(q) + c, sum);
    }
}

/* Gradients are summed in fp32, [3][T, D], and rounded once: dq at the head's end, dk and dv
 * when all heads of their key head have been added. */
static float *sums(const query *q, int64_t t, int part)
{
    return q->a->work + 3 * q->a->T + (part * q->a->T + t) * q->size;
}

/* Adds what key j contributes to this query's dq, and gets from it as its dk and dv. */
static void add_key(const query *q, int64_t j, float ds, float weight)
{
    float *dq = sums(q, q->i, QUERY), *dk = sums(q, j, KEY), *dv = sums(q, j, VALUE);
    for (int64_t c = 0; c < q->size; c++) {
        dq[c] += ds * (float)get(q, j, KEY, c);
        dk[c] += ds * (float)get(q, q->i, QUERY, c);
        dv[c] += weight * (float)get_dy(q, c);
    }
}

static void backward(const query *q)
{
    const double scale = 1.0 / sqrt((double)q->size);
    float *p = q->a->work, *mask = p + q->a->T, *dp = mask + q->a->T;
    probabilities(q, p);
    masks(q, mask);

    double mean = 0.0; /* of dp, weighted by p: softmax' derivative subtracts it */
    for (int64_t j = 0; j <= q->i; j++) {
        double sum = 0.0;
        for (int64_t c = 0; c < q->size; c++) sum += get_dy(q, c) * get(q, j, VALUE, c);
        dp[j] = mask[j] * (float)sum;
        mean += (double)p[j] * dp[j];
    }
    for (int64_t j = 0; j <= q->i; j++)
        add_key(q, j, (float)(scale * p[j] * (dp[j] - mean)), p[j] * mask[j]);
}

static void forward_head(const query *head)
{
    query q = *head;
    for (q.i = 0; q.i < q.a->T; q.i++) forward(&q);
}

static void store_sums(const query *q, const zero_heads *to, int part)
{
    for (int64_t t = 0; t < q->a->T; t++)
        for (int64_t c = 0; c < q->size; c++)
            zero_naive_set(q->a->rows_type, to->x, place(q, to, t, part) + c,
                           sums(q, t, part)[c]);
}

static void backward_head(const query *head)
{
    query q = *head;
    const zero_attention *a = q.a;
    const int64_t group = a->H / a->K, of_part = a->T * q.size;
    const bool is_first = q.h % group == 0, is_last = q.h % group == group - 1;
    memset(sums(&q, 0, QUERY), 0, (size_t)((is_first ? 3 : 1) * of_part) * sizeof(float));
    for (q.i = 0; q.i < a->T; q.i++) backward(&q);
    store_sums(&q, &a->dq, QUERY);
    if (!is_last) return;
    store_sums(&q, &a->dk, KEY);
    store_sums(&q, &a->dv, VALUE);
}

static void for_each_head(const zero_attention *a, void (*visit)(const query *head))
{
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t h = 0; h < a->H; h++) {
            const query head = {a, b, h, 0, a->D};
            visit(&head);
        }
}

/* A query's probabilities, masks and their gradient, and the sums of a head. */
int64_t zero_naive_attention_workspace(const zero_attention *a)
{
    return 3 * a->T + 3 * a->T * a->D;
}

void zero_naive_attention(const zero_math *math, const zero_attention *a)
{
    for_each_head(a, forward_head);
    zero_math_poll(math);
}

/* The oracle computes everything again from q, k and v: it reads neither out nor lse. */
void zero_naive_attention_backward(const zero_math *math, const zero_attention *a)
{
    for_each_head(a, backward_head);
    zero_math_poll(math);
}
