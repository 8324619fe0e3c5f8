/* cpu_rows.h - products of few rows and a matrix, which is read once, as it is, row by row: included by
 * cpu_kernels.c, which is compiled once per instruction set. 16-bit numbers are widened on their way
 * into a register, where several rows meet them.
 *
 * add_rows() adds to each element in the order of the matrix' rows. row_dots() has 32 partial sums,
 * folded in halves. So neither the vector width nor a cut shows in the bits, nor the number of rows. */
#pragma once

#include <string.h>

#include "base/number.h"
#include "base/vector_lanes.h"
#include "math/cpu_sums.h"

#define TOGETHER 4   /* rows that meet in registers */
#define LONG     256 /* columns of rows that are not in cache */

/* `n` < WIDTH numbers from x[i] on, then zeros. */
INLINE floats load_some(zero_type type, const void *x, int64_t i, int64_t n)
{
    char some[WIDTH * sizeof(float)] = {0};
    const size_t size = zero_type_size(type);
    memcpy(some, (const char *)x + (size_t)i * size, (size_t)n * size);
    return load(type, some, 0);
}

/* `group` rows of b from row r on, `m` of x from row i on. */
INLINE void add_group(int m, int group, zero_type type, const zero_rows *t, int64_t i,
                      int64_t r)
{
    const float *x = t->x + i * t->x_stride + r;
    float *out = t->out + i * t->out_stride;
    int64_t j = 0;
#pragma GCC unroll 4
    for (; j + WIDTH <= t->n; j += WIDTH) {
        floats b[TOGETHER];
#pragma GCC unroll 4
        for (int g = 0; g < group; g++) b[g] = load(type, t->b, (r + g) * t->stride + j);
#pragma GCC unroll 4
        for (int q = 0; q < m; q++) {
            floats *to = (floats *)(out + q * t->out_stride + j), sum = *to;
#pragma GCC unroll 4
            for (int g = 0; g < group; g++) sum += x[q * t->x_stride + g] * b[g];
            *to = sum;
        }
    }
    for (int q = 0; q < m && j < t->n; q++) {
        float *to = out + q * t->out_stride + j;
        floats sum = load_some(ZERO_FP32, to, 0, t->n - j);
        for (int g = 0; g < group; g++)
            sum += x[q * t->x_stride + g] *
                   load_some(type, t->b, (r + g) * t->stride + j, t->n - j);
        memcpy(to, &sum, (size_t)(t->n - j) * sizeof *to);
    }
}

/* Lines that a group's rows have in memory, read as one stream; a look at several rows by turns gets a
 * half of that. */
INLINE void fetch(zero_type type, const zero_rows *t, int64_t r, int64_t rows)
{
    const size_t size = zero_type_size(type), bytes = (size_t)t->n * size;
    for (int64_t g = 0; g < rows; g++) {
        const char *row = (const char *)t->b + (size_t)((r + g) * t->stride) * size;
        for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 3);
    }
}

/* A row of x alone needs so little arithmetic that it goes with the stream. */
INLINE void add_rows_of(zero_type type, const zero_rows *t)
{
    const bool is_long = t->n > LONG;
    int64_t r = 0;
    for (; r + TOGETHER <= t->rows && !(is_long && t->m == 1); r += TOGETHER) {
        int64_t i = 0;
        if (is_long) fetch(type, t, r, TOGETHER);
        for (; i + TOGETHER <= t->m; i += TOGETHER)
            add_group(TOGETHER, TOGETHER, type, t, i, r);
        for (; i < t->m; i++) add_group(1, TOGETHER, type, t, i, r);
    }
    for (; r < t->rows; r++)
        for (int64_t i = 0; i < t->m; i++) add_group(1, 1, type, t, i, r);
}

static void add_rows(zero_type type, const zero_rows *t)
{
    switch (type) {
    case ZERO_FP32: add_rows_of(ZERO_FP32, t); break;
    case ZERO_BF16: add_rows_of(ZERO_BF16, t); break;
    default: add_rows_of(ZERO_FP16, t); break;
    }
}

static float fold(floats part[PARTS])
{
    float lane[WIDTH];
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++) part[p] += part[p + half];
    memcpy(lane, part, sizeof lane);
    for (int half = WIDTH / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

/* One row of the matrix and `m` rows of x. */
INLINE void dot_tile(int m, zero_type type, const zero_rows *t, int64_t i, int64_t r)
{
    floats part[TOGETHER][PARTS] = {{{0}}};
    int64_t at = 0;
    for (; at + SUMS <= t->n; at += SUMS)
        for (int p = 0; p < PARTS; p++) {
            const floats b = load(type, t->b, r * t->stride + at + p * WIDTH);
#pragma GCC unroll 4
            for (int q = 0; q < m; q++)
                part[q][p] +=
                    load(ZERO_FP32, t->x, (i + q) * t->x_stride + at + p * WIDTH) * b;
        }
    for (int p = 0; at < t->n; p++, at += WIDTH) {
        const int64_t len = zero_min(t->n - at, WIDTH);
        floats b = load_some(type, t->b, r * t->stride + at, len);
        for (int q = 0; q < m; q++)
            part[q][p] += load_some(ZERO_FP32, t->x, (i + q) * t->x_stride + at, len) * b;
    }
    for (int q = 0; q < m; q++) t->out[(i + q) * t->out_stride + r] = fold(part[q]);
}

INLINE void row_dots_of(zero_type type, const zero_rows *t)
{
    int64_t i = 0;
    for (; i + TOGETHER <= t->m; i += TOGETHER)
        for (int64_t r = 0; r < t->rows; r++) dot_tile(TOGETHER, type, t, i, r);
    for (; i < t->m; i++)
        for (int64_t r = 0; r < t->rows; r++) dot_tile(1, type, t, i, r);
}

static void row_dots(zero_type type, const zero_rows *t)
{
    switch (type) {
    case ZERO_FP32: row_dots_of(ZERO_FP32, t); break;
    case ZERO_BF16: row_dots_of(ZERO_BF16, t); break;
    default: row_dots_of(ZERO_FP16, t); break;
    }
}
