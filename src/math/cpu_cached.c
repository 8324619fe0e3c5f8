/* cpu_cached.c - keys and values that stay from token to token, and the attention of one query over
 * them: two passes over contiguous rows, of keys and of values. Threads have heads of texts. */
#include "math/cpu_cached.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "math/cpu_state.h"
#include "math/team.h"

#define LOG2_E 1.4426950408889634
#define ROWS   64 /* that one thread copies, at least */

/* Positions [first, end) of all texts', counted through. */
static void remember_rows(const zero_math *math, const void *arg, int64_t first,
                          int64_t end)
{
    const zero_cached *a = arg;
    const int64_t size = a->C / a->H;
    for (int64_t i = first; i < end; i++) {
        const int64_t b = i / a->T, at = (a->past ? a->past[b] : 0) + i % a->T;
        const float *row = (const float *)a->qkv + i * 3 * a->C;
        for (int64_t h = 0; h < a->H; h++) {
            const size_t bytes = (size_t)size * sizeof *row;
            memcpy(zero_cached_key(a, b, h, at), row + a->C + h * size, bytes);
            memcpy(zero_cached_value(a, b, h, at), row + 2 * a->C + h * size, bytes);
        }
        if ((i + 1) % ROWS == 0) zero_math_poll(math);
    }
}

void zero_cpu_remember(const zero_math *math, const zero_cached *a)
{
    assert(a->rows_type == ZERO_FP32);
    zero_team_share(math, a->B * a->T, ROWS, remember_rows, a);
    zero_math_poll(math);
}

/* One head of one text: out[C/H]. The query is scaled, so that powers of 2 give the softmax. */
static void attend(const zero_math *math, const zero_cached *a, int64_t b, int64_t h)
{
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t size = a->C / a->H, keys = a->past[b] + 1;
    const float *q = (const float *)a->qkv + b * 3 * a->C + h * size;
    float *query = zero_cached_room(a, b, h), *score = query + zero_round_up(size, 16);
    float *out = (float *)a->out + b * a->C + h * size, lse, over_sum;
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

static void attend_range(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_cached *a = arg;
    for (int64_t i = first; i < end; i++) {
        attend(math, a, i / a->H, i % a->H);
        zero_math_poll(math);
    }
}

void zero_cpu_recall(const zero_math *math, const zero_cached *a)
{
    zero_team_share(math, a->B * a->H, 1, attend_range, a);
}
