/* cpu_cached.c - keys and values that stay from token to token, and the attention of one query over
 * them: two passes over contiguous rows, of keys and of values, one head after the other. */
#include "math/cpu_cached.h"

#include <math.h>
#include <string.h>

#include "math/cpu_state.h"

#define LOG2_E 1.4426950408889634

void zero_cpu_remember(const zero_math *math, const zero_cached *a)
{
    const int64_t size = a->C / a->H;
    for (int64_t b = 0; b < a->B; b++) {
        for (int64_t t = 0; t < a->T; t++) {
            const float *row = a->qkv + (b * a->T + t) * 3 * a->C;
            const int64_t at = (a->past ? a->past[b] : 0) + t;
            for (int64_t h = 0; h < a->H; h++) {
                const size_t bytes = (size_t)size * sizeof *row;
                memcpy(zero_cached_key(a, b, h, at), row + a->C + h * size, bytes);
                memcpy(zero_cached_value(a, b, h, at), row + 2 * a->C + h * size, bytes);
            }
        }
        zero_math_poll(math);
    }
}

/* One head of one text: out[C/H]. The query is scaled, so that powers of 2 give the softmax. */
static void attend(const zero_math *math, const zero_cached *a, int64_t b, int64_t h)
{
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t size = a->C / a->H, keys = a->past[b] + 1;
    const float *q = a->qkv + b * 3 * a->C + h * size;
    float *query = zero_cached_room(a, b), *score = query + zero_round_up(a->C, 16);
    float *out = a->out + b * a->C + h * size, lse, over_sum;
    const float scale = (float)(LOG2_E / sqrt((double)size));
    const zero_cpu_scores t = {1, a->past[b], keys, 0};
    kernels->scale(size, scale, q, query);
    zero_rows rows = {.m = 1,
                      .rows = keys,
                      .n = size,
                      .x = query,
                      .b = zero_cached_key(a, b, h, 0),
                      .stride = size,
                      .out = score};
    kernels->row_dots(ZERO_FP32, &rows);
    kernels->softmax(&t, score, &lse, &over_sum);
    memset(out, 0, (size_t)size * sizeof *out);
    rows.x = score, rows.b = zero_cached_value(a, b, h, 0), rows.out = out;
    kernels->add_rows(ZERO_FP32, &rows);
    kernels->scale(size, over_sum, out, out);
}

void zero_cpu_recall(const zero_math *math, const zero_cached *a)
{
    for (int64_t b = 0; b < a->B; b++)
        for (int64_t h = 0; h < a->H; h++) {
            attend(math, a, b, h);
            zero_math_poll(math);
        }
}
