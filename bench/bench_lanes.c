#include "bench_lanes.h"

#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/rng.h"

#define PERIOD 4096 /* of the numbers */
#define GAP    1040 /* floats between lanes: not whole pages, as in a run */

static zero_attention attention_of(const bench_lanes *l)
{
    return (zero_attention){
        .B = l->rows / l->T, .T = l->T, .H = l->H, .K = l->H, .D = l->C / l->H};
}

/* The arrays of one call, beside the lanes. */
typedef struct {
    void **array;
    int64_t n;
    size_t size;
} part;

#define PARTS 11

static void list_parts(bench_lanes *l, part parts[PARTS])
{
    const size_t f = sizeof(float);
    zero_attention a = attention_of(l);
    const part all[PARTS] = {
        {(void **)&l->mean, l->rows, f},
        {(void **)&l->rstd, l->rows, f},
        {(void **)&l->sums, 4 * l->C, f},
        {(void **)&l->more_sums, 4 * l->C, f},
        {(void **)&l->lse, l->rows * l->H, f},
        {(void **)&l->losses, l->rows, f},
        {(void **)&l->work, l->backend->attention_workspace(&a) + 1, f},
        {(void **)&l->math.scratch, zero_math_scratch(), f},
        {(void **)&l->square, 1, sizeof(double)},
        {(void **)&l->tokens, l->rows, sizeof(int32_t)},
        {(void **)&l->lane[0], (BENCH_LANES + 2) * (l->length + GAP), f},
    };
    memcpy(parts, all, sizeof all);
}

static zero_status take_memory(bench_lanes *l)
{
    part parts[PARTS];
    size_t bytes = 0;
    list_parts(l, parts);
    for (int i = 0; i < PARTS; i++) bytes += bench_block_bytes(parts[i].n, parts[i].size);
    ZERO_TRY(bench_block_init(&l->block, l->backend, &l->math, bytes));
    for (int i = 0; i < PARTS; i++)
        *parts[i].array = bench_block_part(&l->block, parts[i].n, parts[i].size);
    for (int i = 1; i < BENCH_LANES; i++) l->lane[i] = l->lane[i - 1] + l->length + GAP;
    l->grad = (char *)(l->lane[BENCH_LANES - 1] + l->length + GAP);
    l->param = l->grad + (size_t)(l->length + GAP) * sizeof(float);
    return ZERO_OK;
}

static zero_status fill_tokens(bench_lanes *l)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    int32_t tokens[PERIOD];
    for (int i = 0; i < PERIOD; i++)
        tokens[i] = (int32_t)(zero_rng_bits(&rng, (uint64_t)i) %
                              (uint64_t)zero_min(l->words, l->V));
    return bench_block_fill(&l->block, l->tokens, (size_t)l->rows * sizeof *l->tokens,
                            tokens, sizeof tokens);
}

zero_status bench_lanes_init(bench_lanes *l)
{
    const float one = 1.0f;
    ZERO_TRY(l->backend->open(&l->math));
    l->is_open = true;
    if (l->backend->accepts) ZERO_TRY(l->backend->accepts(&l->math, l->type));
    ZERO_TRY(take_memory(l));
    ZERO_TRY(bench_block_fill(&l->block, l->rstd, (size_t)l->rows * sizeof one, &one,
                              sizeof one));
    return fill_tokens(l);
}

void bench_lanes_destroy(bench_lanes *l)
{
    bench_block_destroy(&l->block);
    if (l->is_open && l->backend->close) l->backend->close(&l->math);
    *l = (bench_lanes){0};
}

static zero_status repeat(bench_lanes *l, size_t size, const void *pattern, void *to)
{
    return bench_block_fill(&l->block, to, (size_t)l->length * size, pattern,
                            PERIOD * size);
}

zero_status bench_lanes_fill(bench_lanes *l)
{
    float pattern[PERIOD], squares[PERIOD], typed[PERIOD];
    uint16_t halves[2 * PERIOD];
    const void *plain = pattern;
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    zero_rng_normal(&rng, 0, PERIOD, pattern);
    for (int i = 0; i < PERIOD; i++) squares[i] = pattern[i] * pattern[i];
    zero_convert(ZERO_FP32, l->type, PERIOD, pattern, typed);
    for (int i = 0; i < 2 && l->rows_type != ZERO_FP32; i++) {
        zero_convert(ZERO_FP32, l->rows_type, PERIOD, pattern, halves + i * PERIOD);
        plain = halves;
    }
    for (int i = 0; i < BENCH_LANES; i++)
        ZERO_TRY(repeat(l, sizeof(float), i == BENCH_V ? squares : plain, l->lane[i]));
    ZERO_TRY(repeat(l, zero_type_size(l->type), typed, l->grad));
    return repeat(l, zero_type_size(l->type), typed, l->param);
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
    bool copies = l->backend->yardstick != NULL; /* to the last of the lanes */
    int64_t all = (int64_t)(sizeof lanes / sizeof lanes[0] - copies) * l->length;
    int64_t at = l->walked % l->length, left = l->length - at;
    float *x = l->lane[lanes[l->walked / l->length]] + at;
    *n = zero_min(most, left);
    l->walked = (l->walked + *n) % all;
    return x;
}

/* From lane to lane, by the device's library. */
static void copy(bench_lanes *l, int64_t left)
{
    for (int64_t n; left > 0; left -= n) {
        float *x = walk(l, left, &n);
        float *to = l->lane[BENCH_STREAM] + (x - l->lane[0]) % (l->length + GAP);
        l->backend->yardstick->copy(&l->math, to, x, (size_t)n * sizeof *x);
    }
}

void bench_lanes_stream(bench_lanes *l, double bytes)
{
    int64_t left = (int64_t)(bytes / (2.0 * sizeof(float)));
    if (l->backend->yardstick) {
        copy(l, left);
        return;
    }
    for (int64_t n; left > 0; left -= n) {
        float *x = walk(l, left, &n);
        scale(n, -1.0f, x); /* sizes never change, however often this runs */
    }
}

void bench_lanes_read(bench_lanes *l, double bytes)
{
    if (l->backend->yardstick) {
        bench_lanes_stream(l, bytes);
        return;
    }
    volatile float kept = 0.0f;
    int64_t left = (int64_t)(bytes / sizeof(float));
    for (int64_t n; left > 0; left -= n) {
        float *x = walk(l, left, &n);
        kept = kept + total(n, x);
    }
}
