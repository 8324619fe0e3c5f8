/* cpu_rows.h - products of few rows and a matrix, which is read once, as it is, row by row:
 * included by cpu_kernels.c, which is compiled once per instruction set. 16-bit numbers are
 * widened on their way into a register, where several rows meet them.
 *
 * add_rows() adds to each element in the order of the matrix' rows, from memory or, for
 * many rows of x, from panels of some columns, widened once: tiles of x and a panel then
 * add up in registers. row_dots() has 32 partial sums, folded in halves. So neither the
 * vector width nor a cut shows in the bits, nor the number of rows. */
#pragma once

#include "base/type.h"
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
        zero_copy(to, &sum, t->n - j);
    }
}

/* Lines that the group of rows from r on has in memory, as one stream; a look at several
 * rows by turns gets a half of that. */
INLINE void fetch(zero_type type, const zero_rows *t, int64_t r)
{
    const size_t size = zero_type_size(type), bytes = (size_t)t->n * size;
    for (int64_t g = 0; g < TOGETHER; g++) {
        const char *row = (const char *)t->b + (size_t)((r + g) * t->stride) * size;
        for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, 3);
    }
}

/* A row of x alone needs so little arithmetic that it goes with the stream of whole rows,
 * which the CPU foresees. Parts of rows, as several threads have them, are fetched a group
 * ahead: 1.6 times as fast; past the last row that is harmless. */
INLINE void add_rows_of(zero_type type, const zero_rows *t)
{
    const bool is_long = t->n > LONG, is_part = t->n < t->stride;
    const bool by_row = is_long && t->m == 1 && !is_part;
    const int64_t ahead = t->m == 1 ? TOGETHER : 0;
    int64_t r = 0;
    for (; r + TOGETHER <= t->rows && !by_row; r += TOGETHER) {
        int64_t i = 0;
        if (is_long) fetch(type, t, r + ahead);
        for (; i + TOGETHER <= t->m; i += TOGETHER)
            add_group(TOGETHER, TOGETHER, type, t, i, r);
        for (; i < t->m; i++) add_group(1, TOGETHER, type, t, i, r);
    }
    for (; r < t->rows; r++)
        for (int64_t i = 0; i < t->m; i++) add_group(1, 1, type, t, i, r);
}

/* ---- many rows of x ---- */

#define TALL  6                     /* rows of a tile */
#define WIDE  (WIDTH == 16 ? 4 : 2) /* registers of a row of it: all fit the register file */
#define PANEL (WIDE * WIDTH)        /* columns; divides 64 */

/* Rows that follow those of the block are often read next: their lines are on the way while
 * these are widened. */
#define ROWS_AHEAD 8

/* Panel after panel, [rows, PANEL] each; zeros follow the last column. */
INLINE void widen_panels(zero_type type, const zero_rows *t)
{
    const int64_t per_line = 64 / (int64_t)zero_type_size(type);
    const int64_t whole = t->n / WIDTH * WIDTH, all = zero_round_up(t->n, PANEL);
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t j = 0; j < all; j += WIDTH) {
            float *to = t->room + j / PANEL * PANEL * t->rows + r * PANEL + j % PANEL;
            const int64_t at = r * t->stride + j;
            if (j % per_line == 0)
                __builtin_prefetch(zero_type_at(type, t->b, at + ROWS_AHEAD * t->stride), 0,
                                   2);
            if (j < whole)
                *(floats *)to = load(type, t->b, at);
            else
                *(floats *)to = load_some(type, t->b, at, zero_max(t->n - j, 0));
        }
}

/* out[m, PANEL] += x[m, rows] panel */
INLINE void add_tile(int m, int64_t rows, const float *x, int64_t x_stride,
                     const float *panel, float *out, int64_t stride)
{
    floats sum[TALL][WIDE];
#pragma GCC unroll 6
    for (int q = 0; q < m; q++)
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++)
            sum[q][w] = *(const floats *)(out + q * stride + w * WIDTH);
    for (int64_t r = 0; r < rows; r++, panel += PANEL) {
        floats b[WIDE];
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++) b[w] = *(const floats *)(panel + w * WIDTH);
#pragma GCC unroll 6
        for (int q = 0; q < m; q++) {
            const float factor = x[q * x_stride + r];
#pragma GCC unroll 4
            for (int w = 0; w < WIDE; w++) sum[q][w] += factor * b[w];
        }
    }
#pragma GCC unroll 6
    for (int q = 0; q < m; q++)
#pragma GCC unroll 4
        for (int w = 0; w < WIDE; w++)
            *(floats *)(out + q * stride + w * WIDTH) = sum[q][w];
}

static void add_tile_of(int64_t m, int64_t rows, const float *x, int64_t x_stride,
                        const float *panel, float *out, int64_t stride)
{
    switch (m) {
    case 1: add_tile(1, rows, x, x_stride, panel, out, stride); break;
    case 2: add_tile(2, rows, x, x_stride, panel, out, stride); break;
    case 3: add_tile(3, rows, x, x_stride, panel, out, stride); break;
    case 4: add_tile(4, rows, x, x_stride, panel, out, stride); break;
    case 5: add_tile(5, rows, x, x_stride, panel, out, stride); break;
    default: add_tile(TALL, rows, x, x_stride, panel, out, stride); break;
    }
}

/* The `n` < PANEL columns at the end. */
static void add_narrow_tile(int64_t m, const zero_rows *t, const float *x,
                            const float *panel, int64_t n, float *out)
{
    float wide[TALL * PANEL] = {0};
    for (int64_t q = 0; q < m; q++)
        memcpy(wide + q * PANEL, out + q * t->out_stride, (size_t)n * sizeof *out);
    add_tile_of(m, t->rows, x, t->x_stride, panel, wide, PANEL);
    for (int64_t q = 0; q < m; q++) zero_copy(out + q * t->out_stride, wide + q * PANEL, n);
}

/* Tiles are about equally tall. */
static void add_panels(const zero_rows *t)
{
    const int64_t tall = zero_divide_up(t->m, zero_divide_up(t->m, TALL));
    for (int64_t j = 0; j < t->n; j += PANEL)
        for (int64_t i = 0; i < t->m; i += tall) {
            const int64_t m = zero_min(t->m - i, tall);
            const float *x = t->x + i * t->x_stride, *panel = t->room + j * t->rows;
            float *out = t->out + i * t->out_stride + j;
            if (j + PANEL <= t->n)
                add_tile_of(m, t->rows, x, t->x_stride, panel, out, t->out_stride);
            else
                add_narrow_tile(m, t, x, panel, t->n - j, out);
        }
}

INLINE void add_rows_as(zero_type type, const zero_rows *t)
{
    if (!t->room) {
        add_rows_of(type, t);
        return;
    }
    widen_panels(type, t);
    add_panels(t);
}

static void add_rows(zero_type type, const zero_rows *t)
{
    switch (type) {
    case ZERO_FP32: add_rows_as(ZERO_FP32, t); break;
    case ZERO_BF16: add_rows_as(ZERO_BF16, t); break;
    default: add_rows_as(ZERO_FP16, t); break;
    }
}

INLINE float fold(const floats part[PARTS])
{
    float lane[WIDTH];
    floats sum[PARTS];
#pragma GCC unroll 8
    for (int p = 0; p < PARTS; p++) sum[p] = part[p];
#pragma GCC unroll 4
    for (int half = PARTS / 2; half > 0; half /= 2)
#pragma GCC unroll 4
        for (int p = 0; p < half; p++) sum[p] += sum[p + half];
    memcpy(lane, sum, sizeof lane);
    for (int half = WIDTH / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

/* `pair` rows of the matrix, 1 or 2, and `m` rows of x. */
INLINE void dot_tile(int m, int pair, zero_type type, const zero_rows *t, int64_t i,
                     int64_t r)
{
    floats part[TOGETHER][2][PARTS] = {{{{0}}}};
    const float *x = t->x + i * t->x_stride;
    int64_t at = 0;
    for (; at + SUMS <= t->n; at += SUMS)
#pragma GCC unroll 8
        for (int p = 0; p < PARTS; p++) {
            floats b[2] = {load(type, t->b, r * t->stride + at + p * WIDTH)};
            if (pair == 2) b[1] = load(type, t->b, (r + 1) * t->stride + at + p * WIDTH);
#pragma GCC unroll 4
            for (int q = 0; q < m; q++) {
                const floats a = load(ZERO_FP32, x, q * t->x_stride + at + p * WIDTH);
                part[q][0][p] += a * b[0];
                if (pair == 2) part[q][1][p] += a * b[1];
            }
        }
#pragma GCC unroll 8
    for (int p = 0; p < PARTS;
         p++) { /* constant places: sums in registers have no others */
        const int64_t from = at + p * WIDTH, len = zero_min(t->n - from, WIDTH);
        if (len <= 0) continue;
#pragma GCC unroll 2
        for (int k = 0; k < pair; k++) {
            const floats b = load_some(type, t->b, (r + k) * t->stride + from, len);
#pragma GCC unroll 4
            for (int q = 0; q < m; q++)
                part[q][k][p] += load_some(ZERO_FP32, x, q * t->x_stride + from, len) * b;
        }
    }
#pragma GCC unroll 4
    for (int q = 0; q < m; q++)
#pragma GCC unroll 2
        for (int k = 0; k < pair; k++)
            t->out[(i + q) * t->out_stride + r + k] = fold(part[q][k]);
}

/* Two rows of the matrix at a time, where there are registers for their sums. */
INLINE void row_dots_of(zero_type type, const zero_rows *t)
{
    int64_t i = 0;
    for (; i + TOGETHER <= t->m; i += TOGETHER) {
        int64_t r = 0;
        for (; WIDTH == 16 && r + 2 <= t->rows; r += 2)
            dot_tile(TOGETHER, 2, type, t, i, r);
        for (; r < t->rows; r++) dot_tile(TOGETHER, 1, type, t, i, r);
    }
    for (; i < t->m; i++)
        for (int64_t r = 0; r < t->rows; r++) dot_tile(1, 1, type, t, i, r);
}

static void row_dots(zero_type type, const zero_rows *t)
{
    switch (type) {
    case ZERO_FP32: row_dots_of(ZERO_FP32, t); break;
    case ZERO_BF16: row_dots_of(ZERO_BF16, t); break;
    default: row_dots_of(ZERO_FP16, t); break;
    }
}
