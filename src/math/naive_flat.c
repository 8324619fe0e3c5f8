/* naive_flat.c - the oracle's operations on flat ranges: the optimizer's step and
 * gradients. */

#include "base/elementary.h"
#include "base/half.h"
#include "math/naive.h"

double zero_naive_get(zero_type type, const void *x, int64_t i)
{
    if (type == ZERO_FP32) return ((const float *)x)[i];
    uint16_t half = ((const uint16_t *)x)[i];
    return type == ZERO_BF16 ? zero_from_bf16(half) : zero_from_fp16(half);
}

static uint16_t round_to(zero_type type, float value)
{
    return type == ZERO_BF16 ? zero_to_bf16(value) : zero_to_fp16(value);
}

void zero_naive_set(zero_type type, void *x, int64_t i, double value)
{
    if (type == ZERO_FP32)
        ((float *)x)[i] = (float)value;
    else
        ((uint16_t *)x)[i] = round_to(type, (float)value);
}

void zero_naive_clear(const zero_math *math, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] = 0.0f;
    zero_math_poll(math);
}

static float flush(float x, float least)
{
    return fabsf(x) < least ? copysignf(0.0f, x) : x;
}

void zero_naive_adamw(const zero_math *math, const zero_adamw *h,
                      const zero_adamw_arrays *a)
{
    const float unbias1 = (float)(1.0 / (1.0 - zero_power(h->beta1, h->step)));
    const float unbias2 = (float)(1.0 / (1.0 - zero_power(h->beta2, h->step)));
    float *m = a->m, *v = a->v, *master = a->master;
    /* The last word is that of the least number. */
    for (int64_t i = a->n - 1; i >= 0 && a->changed; i--) {
        const uint16_t rounded = round_to(a->type, a->master[i]);
        uint64_t word = zero_changed(a->first + i);
        bool differs = rounded != ((const uint16_t *)a->param)[i];
        if (differs && word > *a->changed) *a->changed = word;
    }
    for (int64_t i = 0; i < a->n; i++) { /* Loshchilov & Hutter 2019, algorithm 2 */
        float g = (float)zero_naive_get(a->type, a->grad, i) * h->grad_scale;
        m[i] = flush(m[i], ZERO_ADAMW_LEAST_MOMENT);
        v[i] = flush(v[i], ZERO_ADAMW_LEAST_MOMENT);
        m[i] = h->beta1 * m[i] + (1.0f - h->beta1) * g;     /* line 7 */
        v[i] = h->beta2 * v[i] + (1.0f - h->beta2) * g * g; /* line 8 */
        float decay = h->lr * h->weight_decay * master[i];
        float moving = flush(m[i], ZERO_ADAMW_LEAST_MOVE) * unbias1;
        float step = h->lr * moving / (sqrtf(v[i] * unbias2) + h->eps);
        master[i] = master[i] - decay - step; /* line 12 */
        if (a->type != ZERO_FP32) zero_naive_set(a->type, a->param, i, master[i]);
    }
    zero_math_poll(math);
}

/* The tree of base/tree.h. */
static double tree_squares(zero_type type, int64_t begin, int64_t n, const void *x)
{
    if (n <= ZERO_TREE_BLOCK) {
        double square[ZERO_TREE_BLOCK] = {0};
        for (int64_t i = 0; i < n; i++) {
            double value = zero_naive_get(type, x, begin + i);
            square[i] = value * value;
        }
        /* A block is added by halves. */
        for (int half = ZERO_TREE_BLOCK / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++) square[i] += square[i + half];
        return square[0];
    }
    int64_t left = zero_tree_left(n);
    return tree_squares(type, begin, left, x) +
           tree_squares(type, begin + left, n - left, x);
}

void zero_naive_sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                            double *sum)
{
    zero_math_poll(math);
    *sum = tree_squares(type, 0, n, x);
}

void zero_naive_exact_squares(const zero_math *math, zero_type type, int64_t n,
                              const void *x, zero_exact *sum)
{
    for (int64_t i = 0; i < n; i++)
        zero_exact_add_square(sum, (float)zero_naive_get(type, x, i));
    zero_math_poll(math);
}

void zero_naive_round(const zero_math *math, zero_type type, int64_t n, const float *in,
                      void *out)
{
    for (int64_t i = 0; i < n; i++) zero_naive_set(type, out, i, in[i]);
    zero_math_poll(math);
}

void zero_naive_accumulate(const zero_math *math, zero_type type, int64_t n,
                           const float *sum, const float *leaf, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        float rounded = leaf[i];
        if (type == ZERO_BF16) rounded = zero_from_bf16(zero_to_bf16(rounded));
        if (type == ZERO_FP16) rounded = zero_from_fp16(zero_to_fp16(rounded));
        out[i] = sum ? sum[i] + rounded : rounded;
    }
    zero_math_poll(math);
}
