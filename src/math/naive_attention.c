/* naive_attention.c - attention one query at a time: scores, softmax, dropout, mixture. */
#include <math.h>
#include <string.h>

#include "math/naive.h"

/* One query's view of qkv: row t of a part (0: q, 1: k, 2: v), its own head's channels. */
typedef struct {
    const zero_attention *s;
    int64_t b, h, i, size; /* size = C / H */
} query;

static int64_t in_qkv(const query *q, int64_t t, int part)
{
    return ((q->b * q->s->T + t) * 3 + part) * q->s->C + q->h * q->size;
}

static int64_t in_out(const query *q)
{
    return (q->b * q->s->T + q->i) * q->s->C + q->h * q->size;
}

static int64_t in_lse(const query *q)
{
    return (q->b * q->s->H + q->h) * q->s->T + q->i;
}

static double dot(int64_t n, const float *a, const float *b)
{
    double sum = 0.0;
    for (int64_t c = 0; c < n; c++) sum += (double)a[c] * (double)b[c];
    return sum;
}

/* p[j] = the probability of key j <= i; returns the log of the sum of exponentials. */
static double probabilities(const query *q, const float *qkv, float *p)
{
    const double scale = 1.0 / sqrt((double)q->size);
    const float *mine = qkv + in_qkv(q, q->i, 0);
    double most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j <= q->i; j++)
        most = fmax(most, scale * dot(q->size, mine, qkv + in_qkv(q, j, 1)));
    for (int64_t j = 0; j <= q->i; j++)
        sum += exp(scale * dot(q->size, mine, qkv + in_qkv(q, j, 1)) - most);
    for (int64_t j = 0; j <= q->i; j++)
        p[j] = (float)(exp(scale * dot(q->size, mine, qkv + in_qkv(q, j, 1)) - most) / sum);
    return most + log(sum);
}

static void masks(const query *q, float *mask)
{
    const zero_dropout *d = &q->s->dropout;
    zero_rng stream = d->stream;
    stream.sample += (uint64_t)q->b;
    for (int64_t j = 0; j <= q->i; j++) {
        mask[j] = 1.0f;
        uint64_t element = (uint64_t)((q->h * q->s->T + q->i) * q->s->T + j);
        if (d->p > 0.0f) zero_rng_dropout(&stream, d->p, element, 1, &mask[j]);
    }
}

static void forward(const query *q, const float *qkv, float *out, float *lse, float *p,
                    float *mask)
{
    lse[in_lse(q)] = (float)probabilities(q, qkv, p);
    masks(q, mask);
    for (int64_t c = 0; c < q->size; c++) {
        double sum = 0.0;
        for (int64_t j = 0; j <= q->i; j++)
            sum += (double)(p[j] * mask[j]) * (double)qkv[in_qkv(q, j, 2) + c];
        out[in_out(q) + c] = (float)sum;
    }
}

/* Adds what this query contributes: to its own dq, and to dk and dv of the keys it sees. */
static void backward(const query *q, const float *qkv, const float *dout, float *dqkv,
                     float *p, float *mask, float *dp)
{
    const double scale = 1.0 / sqrt((double)q->size);
    const float *dy = dout + in_out(q);
    probabilities(q, qkv, p);
    masks(q, mask);

    double mean = 0.0; /* of dp, by probability: what softmax' derivative subtracts */
    for (int64_t j = 0; j <= q->i; j++) {
        dp[j] = mask[j] * (float)dot(q->size, dy, qkv + in_qkv(q, j, 2));
        mean += (double)p[j] * (double)dp[j];
    }
    for (int64_t j = 0; j <= q->i; j++) {
        float ds = (float)(scale * (double)p[j] * ((double)dp[j] - mean));
        for (int64_t c = 0; c < q->size; c++) {
            dqkv[in_qkv(q, q->i, 0) + c] += ds * qkv[in_qkv(q, j, 1) + c];
            dqkv[in_qkv(q, j, 1) + c] += ds * qkv[in_qkv(q, q->i, 0) + c];
            dqkv[in_qkv(q, j, 2) + c] += p[j] * mask[j] * dy[c];
        }
    }
}

int64_t zero_naive_attention_workspace(const zero_attention *s)
{
    return 3 * s->T;
}

void zero_naive_attention(const zero_math *math, const zero_attention *s, const float *qkv,
                          float *out, float *lse, float *work)
{
    for (int64_t b = 0; b < s->B; b++) {
        for (int64_t h = 0; h < s->H; h++) {
            for (int64_t i = 0; i < s->T; i++) {
                query q = {s, b, h, i, s->C / s->H};
                forward(&q, qkv, out, lse, work, work + s->T);
            }
        }
    }
    zero_math_poll(math);
}

void zero_naive_attention_backward(const zero_math *math, const zero_attention *s,
                                   const float *qkv, const float *out, const float *lse,
                                   const float *dout, float *dqkv, float *work)
{
    (void)out; /* the oracle computes everything again from qkv */
    (void)lse;
    memset(dqkv, 0, (size_t)(s->B * s->T * 3 * s->C) * sizeof *dqkv);
    for (int64_t b = 0; b < s->B; b++) {
        for (int64_t h = 0; h < s->H; h++) {
            for (int64_t i = 0; i < s->T; i++) {
                query q = {s, b, h, i, s->C / s->H};
                backward(&q, qkv, dout, dqkv, work, work + s->T, work + 2 * s->T);
            }
        }
    }
    zero_math_poll(math);
}
