/* naive_cached.c - attention of one query over what was kept, as its definition says. */

#include "math/naive.h"

void zero_naive_remember(const zero_math *math, const zero_cached *a)
{
    for (int64_t i = 0; i < a->B * a->T; i++)
        for (int64_t k = 0; k < a->K; k++)
            for (int64_t c = 0; c < a->D; c++) {
                const int64_t b = i / a->T, at = (a->past ? a->past[b] : 0) + i % a->T;
                float *part = zero_cached_part(a, b);
                zero_naive_set(
                    a->rows_type, part, zero_cached_key(a, k, at) + c,
                    zero_naive_get(a->rows_type, a->k.x, zero_heads_at(&a->k, i, k) + c));
                zero_naive_set(
                    a->rows_type, part, zero_cached_value(a, k, at) + c,
                    zero_naive_get(a->rows_type, a->v.x, zero_heads_at(&a->v, i, k) + c));
            }
    zero_math_poll(math);
}

/* The scaled product of text b's query of head h with key j. */
static double score(const zero_cached *a, int64_t b, int64_t h, int64_t j)
{
    const int64_t query = zero_heads_at(&a->q, b, h);
    const int64_t key = zero_cached_key(a, h * a->K / a->H, j);
    const float *part = zero_cached_part(a, b);
    double sum = 0.0;
    for (int64_t c = 0; c < a->D; c++)
        sum += zero_naive_get(a->rows_type, a->q.x, query + c) *
               zero_naive_get(a->rows_type, part, key + c);
    return sum / sqrt((double)a->D);
}

static void attend(const zero_cached *a, int64_t b, int64_t h)
{
    const int64_t k = h * a->K / a->H;
    float *p = zero_cached_room(a, b, h);
    const float *part = zero_cached_part(a, b);
    double most = -INFINITY, total = 0.0;
    for (int64_t j = 0; j <= a->past[b]; j++) most = fmax(most, score(a, b, h, j));
    for (int64_t j = 0; j <= a->past[b]; j++) total += exp(score(a, b, h, j) - most);
    for (int64_t j = 0; j <= a->past[b]; j++)
        p[j] = (float)(exp(score(a, b, h, j) - most) / total);
    for (int64_t c = 0; c < a->D; c++) {
        double sum = 0.0;
        for (int64_t j = 0; j <= a->past[b]; j++)
            sum +=
                p[j] * zero_naive_get(a->rows_type, part, zero_cached_value(a, k, j) + c);
        zero_naive_set(a->rows_type, a->out, (b * a->H + h) * a->D + c, sum);
    }
}

void zero_naive_recall(const zero_math *math, const zero_cached *a)
{
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t h = 0; h < a->H; h++) attend(a, b, h);
    zero_math_poll(math);
}
