/* cpu_cached.c - keys and values that stay from token to token, and the attention of one
 * query over them: two passes over contiguous rows, of keys and of values, widened in
 * registers. Threads have heads of texts. */
#include "math/cpu.h"

#include "math/cpu_state.h"
#include "math/team.h"

#define LOG2_E 1.4426950408889634
#define ROWS   64 /* that one thread copies, at least */

/* Key head k of row i, as it is. */
static void keep(const zero_cached *a, const zero_heads *from, int64_t i, int64_t k,
                 float *part, int64_t to)
{
    memcpy(zero_type_to(a->rows_type, part, to),
           zero_type_at(a->rows_type, from->x, zero_heads_at(from, i, k)),
           (size_t)a->D * zero_type_size(a->rows_type));
}

/* Positions [first, end) of all texts', counted through. */
static void remember_rows(const zero_math *math, const void *arg, int64_t first,
                          int64_t end)
{
    const zero_cached *a = arg;
    for (int64_t i = first; i < end; i++) {
        const int64_t b = i / a->T, at = (a->past ? a->past[b] : 0) + i % a->T;
        float *part = zero_cached_part(a, b);
        for (int64_t k = 0; k < a->K; k++) {
            keep(a, &a->k, i, k, part, zero_cached_key(a, k, at));
            keep(a, &a->v, i, k, part, zero_cached_value(a, k, at));
        }
        if ((i + 1) % ROWS == 0) zero_math_poll(math);
    }
}

void zero_cpu_remember(const zero_math *math, const zero_cached *a)
{
    zero_team_share(math, a->B * a->T, ROWS, remember_rows, a);
    zero_math_poll(math);
}

static void attend_range(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    const zero_cached *a = arg;
    for (int64_t i = first; i < end; i++) {
        /* One head of one text. The query is scaled, so that powers of 2 give the
         * softmax. */
        int64_t b = i / a->H;
        int64_t h = i % a->H;
        const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
        const int64_t size = a->D, k = h * a->K / a->H, keys = a->past[b] + 1;
        float *query = zero_cached_room(a, b, h), *score = query + zero_round_up(size, 16);
        float *out = query, lse, over_sum; /* the query is read first */
        const float scale = (float)(LOG2_E / sqrt((double)size));
        const zero_cpu_scores t = {1, a->past[b], keys, 0};
        const float *part = zero_cached_part(a, b);
        zero_convert(a->rows_type, ZERO_FP32, size,
                     zero_type_at(a->rows_type, a->q.x, zero_heads_at(&a->q, b, h)), query);
        kernels->scale(size, scale, query, query);
        zero_rows rows = {.m = 1,
                          .rows = keys,
                          .n = size,
                          .x = query,
                          .b = zero_type_at(a->rows_type, part, zero_cached_key(a, k, 0)),
                          .stride = size,
                          .out = score};
        kernels->row_dots(a->rows_type, &rows);
        kernels->softmax(&t, score, &lse, &over_sum);
        zero_clear(out, size);
        rows.x = score, rows.out = out;
        rows.b = zero_type_at(a->rows_type, part, zero_cached_value(a, k, 0));
        kernels->add_rows(a->rows_type, &rows);
        kernels->scale(size, over_sum, out, out);
        zero_convert(ZERO_FP32, a->rows_type, size, out,
                     zero_type_to(a->rows_type, a->out, (b * a->H + h) * size));
        zero_math_poll(math);
    }
}

void zero_cpu_recall(const zero_math *math, const zero_cached *a)
{
    zero_team_share(math, a->B * a->H, 1, attend_range, a);
}
