/* cpu_attention.c - causal attention by matrix products on blocks of queries.
 *
 *        keys 0 .............. first + rows
 *   first  | P P P P P P P P .         one block of one head: its queries meet all the keys
 *          | P P P P P P P P P .       that any of them may see; what lies above the diagonal
 *   + rows | P P P P P P P P P P       is zero
 *
 * Only one block of scores exists at a time; backward computes it again from the logarithms
 * kept by forward. Source: Dao et al., FlashAttention, arXiv:2205.14135, algorithms 1 and 4
 * (with D = rowsum(dO * O)), without its tiling over keys. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "math/cpu.h"

typedef struct {
    const zero_math *math;
    const zero_attention *s;
    int64_t b, h, first, rows, keys; /* which queries, and how many keys they see */
    float scale;
} block;

static block block_at(const zero_math *math, const zero_attention *s, int64_t b, int64_t h,
                      int64_t first)
{
    int64_t rows = s->T - first < ZERO_ATTENTION_ROWS ? s->T - first : ZERO_ATTENTION_ROWS;
    float scale = (float)(1.0 / sqrt((double)(s->C / s->H)));
    return (block){math, s, b, h, first, rows, first + rows, scale};
}

/* Offsets of this head: of position t in qkv[B,T,3C] (part 0: q, 1: k, 2: v), in
 * out[B,T,C]. */
static int64_t in_qkv(const block *k, int64_t t, int part)
{
    return ((k->b * k->s->T + t) * 3 + part) * k->s->C + k->h * (k->s->C / k->s->H);
}

static int64_t in_out(const block *k, int64_t t)
{
    return (k->b * k->s->T + t) * k->s->C + k->h * (k->s->C / k->s->H);
}

static int64_t in_lse(const block *k, int64_t t)
{
    return (k->b * k->s->H + k->h) * k->s->T + t;
}

/* score[rows, keys] = x y', where x[rows, C/H] belongs to queries and y[keys, C/H] to keys.
 */
static void scores(const block *k, const float *x, int64_t ldx, const float *y,
                   float *score)
{
    zero_gemm g = {.transpose_b = true, .m = k->rows, .n = k->keys, .k = k->s->C / k->s->H};
    g.a = x, g.lda = ldx;
    g.b = y, g.ldb = 3 * k->s->C;
    g.c = score;
    zero_cpu_gemm(k->math, &g);
}

/* out[rows, C/H] = weight[rows, keys] y[keys, C/H] */
static void mix(const block *k, const float *weight, const float *y, float *out,
                int64_t ldo)
{
    zero_gemm g = {.m = k->rows, .n = k->s->C / k->s->H, .k = k->keys};
    g.a = weight;
    g.b = y, g.ldb = 3 * k->s->C;
    g.c = out, g.ldc = ldo;
    zero_cpu_gemm(k->math, &g);
}

/* out[keys, C/H] (+)= weight[rows, keys]' x[rows, C/H]. The last block comes first and sees
 * all keys: it sets what the others add to. */
static void spread(const block *k, const float *weight, const float *x, int64_t ldx,
                   float *out)
{
    zero_gemm g = {.transpose_a = true, .m = k->keys, .n = k->s->C / k->s->H, .k = k->rows};
    g.accumulate = k->keys < k->s->T;
    g.a = weight;
    g.b = x, g.ldb = ldx;
    g.c = out, g.ldc = 3 * k->s->C;
    zero_cpu_gemm(k->math, &g);
}

/* Row i of the mask is elements (h T + i) T ... of the sample's stream. */
static void drop_row(const block *k, int64_t r, const float *p, float *dropped)
{
    const zero_dropout *d = &k->s->dropout;
    zero_rng stream = d->stream;
    stream.sample += (uint64_t)k->b;
    int64_t i = k->first + r;
    zero_cpu_drop(k->math, &stream, d->p, (k->h * k->s->T + i) * k->s->T, i + 1, p,
                  dropped);
}

static void forward(const block *k, const float *qkv, float *out, float *lse, float *p)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(k->math);
    const int64_t C = k->s->C;
    scores(k, qkv + in_qkv(k, k->first, 0), 3 * C, qkv + in_qkv(k, 0, 1), p);
    for (int64_t r = 0; r < k->rows; r++) {
        float *row = p + r * k->keys;
        int64_t i = k->first + r;
        lse[in_lse(k, i)] = kernels->softmax(i + 1, k->keys, k->scale, row);
        if (k->s->dropout.p > 0.0f) drop_row(k, r, row, row);
    }
    mix(k, p, qkv + in_qkv(k, 0, 2), out + in_out(k, k->first), C);
}

/* p[rows, keys] = the probabilities of forward, dropped = what dropout made of them. */
static void probabilities_again(const block *k, const float *qkv, const float *lse,
                                float *p, float *dropped)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(k->math);
    const bool dropout = dropped != p;
    scores(k, qkv + in_qkv(k, k->first, 0), 3 * k->s->C, qkv + in_qkv(k, 0, 1), p);
    if (dropout) memset(dropped, 0, (size_t)(k->rows * k->keys) * sizeof *dropped);
    for (int64_t r = 0; r < k->rows; r++) {
        int64_t i = k->first + r;
        float *row = p + r * k->keys;
        kernels->softmax_again(i + 1, k->keys, k->scale, lse[in_lse(k, i)], row);
        if (dropout) drop_row(k, r, row, dropped + r * k->keys);
    }
}

static void backward(const block *k, const float *qkv, const float *out, const float *lse,
                     const float *dout, float *dqkv, float *work)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(k->math);
    const int64_t C = k->s->C, size = k->rows * k->keys;
    const float *q = qkv + in_qkv(k, k->first, 0), *keys = qkv + in_qkv(k, 0, 1);
    const float *values = qkv + in_qkv(k, 0, 2), *dy = dout + in_out(k, k->first);
    float *p = work, *ds = work + size;
    float *dropped = k->s->dropout.p > 0.0f ? work + 2 * size : p;

    probabilities_again(k, qkv, lse, p, dropped);
    spread(k, dropped, dy, C, dqkv + in_qkv(k, 0, 2)); /* dV += P~' dO */
    scores(k, dy, C, values, ds);                      /* dP~ = dO V' */
    for (int64_t r = 0; r < k->rows; r++) {
        const float *y = out + in_out(k, k->first + r);
        float mean = (float)kernels->dot(C / k->s->H, dy + r * C, y); /* D */
        /* above the diagonal p and dropped are zero, and so become the scores' gradients */
        kernels->softmax_backward(k->keys, k->scale, mean, p + r * k->keys,
                                  dropped + r * k->keys, ds + r * k->keys);
    }
    mix(k, ds, keys, dqkv + in_qkv(k, k->first, 0), 3 * C); /* dQ = dS K */
    spread(k, ds, q, 3 * C, dqkv + in_qkv(k, 0, 1));        /* dK += dS' Q */
}

void zero_cpu_attention(const zero_math *math, const zero_attention *s, const float *qkv,
                        float *out, float *lse, float *work)
{
    assert(s->C % s->H == 0);
    for (int64_t b = 0; b < s->B; b++) {
        for (int64_t h = 0; h < s->H; h++) {
            for (int64_t first = 0; first < s->T; first += ZERO_ATTENTION_ROWS) {
                block k = block_at(math, s, b, h, first);
                forward(&k, qkv, out, lse, work);
                zero_math_poll(math);
            }
        }
    }
}

void zero_cpu_attention_backward(const zero_math *math, const zero_attention *s,
                                 const float *qkv, const float *out, const float *lse,
                                 const float *dout, float *dqkv, float *work)
{
    assert(s->C % s->H == 0);
    const int64_t last = (s->T - 1) / ZERO_ATTENTION_ROWS * ZERO_ATTENTION_ROWS;
    for (int64_t b = 0; b < s->B; b++) {
        for (int64_t h = 0; h < s->H; h++) {
            for (int64_t first = last; first >= 0; first -= ZERO_ATTENTION_ROWS) {
                block k = block_at(math, s, b, h, first);
                backward(&k, qkv, out, lse, dout, dqkv, work);
                zero_math_poll(math);
            }
        }
    }
}
