#include "bench_lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/rng.h"
#include "math/backends.h"

#define PERIOD 4096 /* of the numbers */
#define GAP    1040 /* floats between lanes: not whole pages, as in a run */

static zero_attention attention_of(const bench_lanes *l)
{
    return (zero_attention){.B = l->rows / l->T, .T = l->T, .C = l->C, .H = l->H};
}

static void *take(size_t n, size_t size, bool *failed)
{
    void *memory = calloc(n, size);
    *failed = *failed || !memory;
    return memory;
}

static void fill_tokens(bench_lanes *l)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    for (int64_t i = 0; i < l->rows; i++)
        l->tokens[i] = (int32_t)(zero_rng_bits(&rng, (uint64_t)i) % (uint64_t)l->words);
}

static zero_status init_arena(bench_lanes *l)
{
    const size_t step = (size_t)(l->length + GAP) * sizeof(float);
    ZERO_TRY(zero_arena_init(&l->arena, (BENCH_LANES + 2) * step));
    for (int i = 0; i < BENCH_LANES; i++)
        l->lane[i] = (float *)(void *)(l->arena.base + (size_t)i * step);
    l->grad = l->arena.base + BENCH_LANES * step;
    l->param = l->grad + step;
    return ZERO_OK;
}

zero_status bench_lanes_init(bench_lanes *l)
{
    const size_t f = sizeof(float);
    const size_t rows = (size_t)l->rows;
    zero_attention a = attention_of(l);
    bool failed = false;
    l->mean = take(rows, f, &failed);
    l->rstd = take(rows, f, &failed);
    l->sums = take(4 * (size_t)l->C, f, &failed);
    l->more_sums = take(4 * (size_t)l->C, f, &failed);
    l->lse = take(rows * (size_t)l->H, f, &failed);
    l->losses = take(rows, f, &failed);
    l->work = take((size_t)zero_attention_workspace(&a), f, &failed);
    l->scratch = take((size_t)zero_math_scratch(), f, &failed);
    l->tokens = take(rows, sizeof *l->tokens, &failed);
    if (failed) {
        bench_lanes_destroy(l);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for kernels of %zu rows", rows);
    }
    ZERO_TRY(init_arena(l));
    l->math.scratch = l->scratch;
    for (size_t r = 0; r < rows; r++) l->rstd[r] = 1.0f;
    fill_tokens(l);
    return l->backend->open(&l->math);
}

void bench_lanes_destroy(bench_lanes *l)
{
    zero_arena_destroy(&l->arena);
    free(l->mean);
    free(l->rstd);
    free(l->sums);
    free(l->more_sums);
    free(l->lse);
    free(l->losses);
    free(l->work);
    free(l->scratch);
    free(l->tokens);
    *l = (bench_lanes){0};
}

static void repeat(int64_t length, size_t size, const void *pattern, char *to)
{
    for (int64_t at = 0; at < length; at += PERIOD) {
        int64_t n = zero_min(length - at, PERIOD);
        memcpy(to + (size_t)at * size, pattern, (size_t)n * size);
    }
}

void bench_lanes_fill(bench_lanes *l)
{
    float pattern[PERIOD], squares[PERIOD], typed[PERIOD];
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    zero_rng_normal(&rng, 0, PERIOD, pattern);
    for (int i = 0; i < PERIOD; i++) squares[i] = pattern[i] * pattern[i];
    zero_convert(ZERO_FP32, l->type, PERIOD, pattern, typed);
    for (int i = 0; i < BENCH_LANES; i++)
        repeat(l->length, sizeof(float), i == BENCH_V ? squares : pattern,
               (char *)l->lane[i]);
    repeat(l->length, zero_type_size(l->type), typed, l->grad);
    repeat(l->length, zero_type_size(l->type), typed, l->param);
}

static void scale(int64_t n, float factor, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static float total(int64_t n, const float *x)
{
    float lane[64] = {0}, sum = 0.0f;
    for (int64_t i = 0; i + 64 <= n; i += 64)
        for (int k = 0; k < 64; k++) lane[k] += x[i + k];
    for (int k = 0; k < 64; k++) sum += lane[k];
    return sum;
}

/* The next elements of the walk, at most `most` and within one lane. */
static float *walk(bench_lanes *l, int64_t most, int64_t *n)
{
    static const int lanes[] = {BENCH_X, BENCH_Y, BENCH_Z, BENCH_M, BENCH_STREAM};
    int64_t all = (int64_t)(sizeof lanes / sizeof lanes[0]) * l->length;
    int64_t at = l->walked % l->length, left = l->length - at;
    float *x = l->lane[lanes[l->walked / l->length]] + at;
    *n = zero_min(most, left);
    l->walked = (l->walked + *n) % all;
    return x;
}

void bench_lanes_stream(bench_lanes *l, double bytes)
{
    int64_t left = (int64_t)(bytes / (2.0 * sizeof(float)));
    for (int64_t n; left > 0; left -= n) {
        float *x = walk(l, left, &n);
        scale(n, -1.0f, x); /* sizes never change, however often this runs */
    }
}

void bench_lanes_read(bench_lanes *l, double bytes)
{
    volatile float kept = 0.0f;
    int64_t left = (int64_t)(bytes / sizeof(float));
    for (int64_t n; left > 0; left -= n) {
        float *x = walk(l, left, &n);
        kept = kept + total(n, x);
    }
}
