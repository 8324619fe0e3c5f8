/* naive_turn.c - rotary positions, and the norm of each head before them, as their
 * definition says. */

#include "math/naive.h"

/* One head of one row: where its channels are, and its gain. */
typedef struct {
    const zero_turn *a;
    int64_t r, h; /* h counts through q and k */
} head;

static int64_t place(const head *x, const zero_heads *q, const zero_heads *k)
{
    const int64_t H = x->a->H;
    return x->h < H ? zero_heads_at(q, x->r, x->h) : zero_heads_at(k, x->r, x->h - H);
}

static double get(const head *x, const zero_heads *q, const zero_heads *k, int64_t c)
{
    const void *from = x->h < x->a->H ? q->x : k->x;
    return zero_naive_get(x->a->rows_type, from, place(x, q, k) + c);
}

static void set(const head *x, const zero_heads *q, const zero_heads *k, int64_t c,
                double value)
{
    void *to = x->h < x->a->H ? q->x : k->x;
    zero_naive_set(x->a->rows_type, to, place(x, q, k) + c, value);
}

static double gain(const head *x, int64_t c)
{
    const void *gains = x->h < x->a->H ? x->a->gain_q : x->a->gain_k;
    return gains ? zero_naive_get(x->a->type, gains, c) : 1.0;
}

static float *rstd(const head *x)
{
    return x->a->rstd + x->r * (x->a->H + x->a->K) + x->h;
}

/* The angle of channel c, whose pair is at *other: the first of a pair gets the negative
 * sine times the second. `way` is -1 backward. */
static void aim(const head *x, int64_t c, double way, int64_t *other, double *cosine,
                double *sine)
{
    const zero_turn *a = x->a;
    const int64_t pairs = a->R / 2, t = (a->past ? a->past[x->r / a->T] : 0) + x->r % a->T;
    const double angle = (float)t * a->frequency[c % pairs];
    *other = c < pairs ? c + pairs : c - pairs;
    *cosine = (double)(float)cos(angle);
    *sine = (double)(float)sin(angle) * (c < pairs ? -way : way);
}

static double normed(const head *x, int64_t c)
{
    const double scale = x->a->gain_q ? *rstd(x) : 1.0;
    return get(x, &x->a->q, &x->a->k, c) * scale * gain(x, c);
}

/* Results are made before they are stored: they may lie where they come from. */
static void turn_head(const head *x)
{
    const zero_turn *a = x->a;
    double squares = 0.0, y[4096];
    for (int64_t c = 0; a->gain_q && c < a->D; c++) {
        const double of = get(x, &a->q, &a->k, c);
        squares += of * of / (double)a->D;
    }
    if (a->gain_q) *rstd(x) = (float)(1.0 / sqrt(squares + a->eps));
    for (int64_t c = 0; c < a->D; c++) {
        int64_t other;
        double cosine, sine;
        y[c] = normed(x, c);
        if (c >= a->R) continue;
        aim(x, c, 1.0, &other, &cosine, &sine);
        y[c] = y[c] * cosine + normed(x, other) * sine;
    }
    for (int64_t c = 0; c < a->D; c++) set(x, &a->to_q, &a->to_k, c, y[c]);
}

/* The gradient of what was normed. */
static double turned_back(const head *x, int64_t c)
{
    const zero_turn *a = x->a;
    int64_t other;
    double cosine, sine, d = get(x, &a->dq, &a->dk, c);
    if (c >= a->R) return d;
    aim(x, c, -1.0, &other, &cosine, &sine);
    return d * cosine + get(x, &a->dq, &a->dk, other) * sine;
}

static void turn_head_back(const head *x)
{
    const zero_turn *a = x->a;
    double d[4096], along_x = 0.0;
    for (int64_t c = 0; c < a->D; c++) d[c] = turned_back(x, c);
    for (int64_t c = 0; a->gain_q && c < a->D; c++)
        along_x += d[c] * gain(x, c) * get(x, &a->q, &a->k, c) * *rstd(x) / (double)a->D;
    for (int64_t c = 0; c < a->D; c++) {
        if (a->gain_q) {
            const double scale = *rstd(x);
            d[c] = scale * (d[c] * gain(x, c) - get(x, &a->q, &a->k, c) * scale * along_x);
        }
        set(x, &a->dq, &a->dk, c, d[c]);
    }
}

/* One channel's sum over the heads of q or of k in a slice. */
static void sum_gain(const zero_turn *a, int64_t slice, bool is_key, int64_t c)
{
    const int64_t heads = (is_key ? a->K : a->H) / a->slices;
    const int64_t first = (is_key ? a->H : 0) + slice * heads;
    float *to = a->sums + (2 * slice + is_key) * a->D + c;
    double sum = a->accumulate ? *to : 0.0;
    for (int64_t r = 0; r < a->B * a->T; r++)
        for (int64_t h = first; h < first + heads; h++) {
            const head x = {a, r, h};
            sum += turned_back(&x, c) * get(&x, &a->q, &a->k, c) * *rstd(&x);
        }
    *to = (float)sum;
}

static void for_each_head(const zero_turn *a, void (*visit)(const head *x))
{
    for (int64_t r = 0; r < a->B * a->T; r++)
        for (int64_t h = 0; h < a->H + a->K; h++) visit(&(head){a, r, h});
}

void zero_naive_turn(const zero_math *math, const zero_turn *t)
{
    for_each_head(t, turn_head);
    zero_math_poll(math);
}

void zero_naive_turn_backward(const zero_math *math, const zero_turn *t)
{
    for (int64_t s = 0; t->gain_q && s < t->slices; s++)
        for (int64_t c = 0; c < 2 * t->D; c++) sum_gain(t, s, c >= t->D, c % t->D);
    for_each_head(t, turn_head_back);
    zero_math_poll(math);
}
