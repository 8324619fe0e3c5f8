/* naive_attention.c - attention one query at a time: scores, softmax, dropout, weighted sum. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "math/naive.h"

enum { QUERY, KEY, VALUE };

/* One query's view of a call: its head's channels of any position. */
typedef struct {
    const zero_attention *a;
    int64_t b, h, i, size; /* size = C / H */
} query;

/* An index into qkv. */
static int64_t place(const query *q, int64_t t, int part)
{
    return ((q->b * q->a->T + t) * 3 + part) * q->a->C + q->h * q->size;
}

static const float *get(const query *q, int64_t t, int part)
{
    return (const float *)q->a->qkv + place(q, t, part);
}

static int64_t in_out(const query *q)
{
    return (q->b * q->a->T + q->i) * q->a->C + q->h * q->size;
}

static int64_t in_lse(const query *q)
{
    return (q->b * q->a->H + q->h) * q->a->T + q->i;
}

static double dot(int64_t n, const float *x, const float *y)
{
    double sum = 0.0;
    for (int64_t c = 0; c < n; c++) sum += (double)x[c] * (double)y[c];
    return sum;
}

/* p[j] = the probability of key j <= i; returns the log of the sum of exponentials. */
static double probabilities(const query *q, float *p)
{
    const double scale = 1.0 / sqrt((double)q->size);
    const float *mine = get(q, q->i, QUERY);
    double most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j <= q->i; j++)
        most = fmax(most, scale * dot(q->size, mine, get(q, j, KEY)));
    for (int64_t j = 0; j <= q->i; j++)
        sum += exp(scale * dot(q->size, mine, get(q, j, KEY)) - most);
    for (int64_t j = 0; j <= q->i; j++)
        p[j] = (float)(exp(scale * dot(q->size, mine, get(q, j, KEY)) - most) / sum);
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
    q->a->lse[in_lse(q)] = (float)probabilities(q, p);
    masks(q, mask);
    for (int64_t c = 0; c < q->size; c++) {
        double sum = 0.0;
        for (int64_t j = 0; j <= q->i; j++)
            sum += (double)(p[j] * mask[j]) * (double)get(q, j, VALUE)[c];
        ((float *)q->a->out)[in_out(q) + c] = (float)sum;
    }
}

/* Adds what key j contributes to this query's dq, and gets from it as its dk and dv. */
static void add_key(const query *q, int64_t j, float ds, float weight)
{
    const float *dy = (const float *)q->a->dout + in_out(q);
    float *dqkv = q->a->dqkv;
    for (int64_t c = 0; c < q->size; c++) {
        dqkv[place(q, q->i, QUERY) + c] += ds * get(q, j, KEY)[c];
        dqkv[place(q, j, KEY) + c] += ds * get(q, q->i, QUERY)[c];
        dqkv[place(q, j, VALUE) + c] += weight * dy[c];
    }
}

static void backward(const query *q)
{
    const double scale = 1.0 / sqrt((double)q->size);
    const float *dy = (const float *)q->a->dout + in_out(q);
    float *p = q->a->work, *mask = p + q->a->T, *dp = mask + q->a->T;
    probabilities(q, p);
    masks(q, mask);

    double mean = 0.0; /* of dp, weighted by p: softmax' derivative subtracts it */
    for (int64_t j = 0; j <= q->i; j++) {
        dp[j] = mask[j] * (float)dot(q->size, dy, get(q, j, VALUE));
        mean += (double)p[j] * (double)dp[j];
    }
    for (int64_t j = 0; j <= q->i; j++)
        add_key(q, j, (float)(scale * (double)p[j] * ((double)dp[j] - mean)),
                p[j] * mask[j]);
}

static void for_each_query(const zero_attention *a, void (*visit)(const query *q))
{
    assert(a->rows_type == ZERO_FP32);
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t h = 0; h < a->H; h++)
            for (int64_t i = 0; i < a->T; i++) {
                query q = {a, b, h, i, a->C / a->H};
                visit(&q);
            }
}

int64_t zero_naive_attention_workspace(const zero_attention *a)
{
    return 3 * a->T;
}

void zero_naive_attention(const zero_math *math, const zero_attention *a)
{
    for_each_query(a, forward);
    zero_math_poll(math);
}

/* The oracle computes everything again from qkv: it reads neither out nor lse. */
void zero_naive_attention_backward(const zero_math *math, const zero_attention *a)
{
    memset(a->dqkv, 0, (size_t)(a->B * a->T * 3 * a->C) * sizeof(float));
    for_each_query(a, backward);
    zero_math_poll(math);
}
