/* cpu_pieces.h - pieces of rows, as attention's heads have them: from an array of rows that
 * are far apart into dense memory, back, and multiplied. Included by cpu_kernels.c, which
 * is compiled once per instruction set. */
#pragma once

#include "math/cpu_rows.h"
#include "math/cpu_scores.h"

/* Distance of prefetching, in rows. A CPU follows pieces of 256 bytes that are 9 KB apart
 * with 14 GB/s by itself, and with 25 GB/s so, which is the rate of whole rows. */
#define PIECES_AHEAD 16

INLINE int64_t size_of(zero_type type)
{
    return type == ZERO_FP32 ? 4 : 2;
}

/* `n` < WIDTH numbers to out[i]. */
INLINE void store_some(zero_type type, floats x, void *out, int64_t i, int64_t n)
{
    char some[WIDTH * sizeof(float)];
    const size_t size = (size_t)size_of(type);
    store(type, x, some, 0, false);
    memcpy((char *)out + (size_t)i * size, some, (size_t)n * size);
}

/* Element i of the row that lies `rows` further. */
INLINE const void *piece_at(zero_type type, const void *x, int64_t rows, int64_t stride,
                            int64_t i)
{
    return (const char *)x + size_of(type) * (rows * stride + i);
}

/* The line of element i, PIECES_AHEAD rows later. */
INLINE void fetch_line(zero_type type, bool write, const void *x, int64_t stride, int64_t i)
{
    if (write)
        __builtin_prefetch(piece_at(type, x, PIECES_AHEAD, stride, i), 1);
    else
        __builtin_prefetch(piece_at(type, x, PIECES_AHEAD, stride, i), 0);
}

INLINE void move_row(zero_type from, zero_type to, const zero_cpu_pieces *t, float factor,
                     bool fetch_x, bool fetch_out, const void *x, void *out)
{
    const int64_t n = t->n;
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i + WIDTH <= n; i += WIDTH) {
        if (fetch_x) fetch_line(from, false, x, t->x_stride, i);
        if (fetch_out) fetch_line(to, true, out, t->out_stride, i);
        store(to, factor * load(from, x, i), out, i, false);
    }
    if (i < n) store_some(to, factor * load_some(from, x, i, n - i), out, i, n - i);
}

INLINE void move_as(zero_type from, zero_type to, const zero_cpu_pieces *t)
{
    for (int64_t r = 0; r < t->rows; r++) {
        const void *x = piece_at(from, t->x, r, t->x_stride, 0);
        void *out = (char *)t->out + size_of(to) * r * t->out_stride;
        const float factor = t->factors ? t->factors[r] : t->factor;
        if (r + PIECES_AHEAD < t->x_rows)
            move_row(from, to, t, factor, true, false, x, out);
        else if (r + PIECES_AHEAD < t->out_rows)
            move_row(from, to, t, factor, false, true, x, out);
        else
            move_row(from, to, t, factor, false, false, x, out);
    }
}

static void move(const zero_cpu_pieces *t)
{
    if (t->x_type == ZERO_BF16)
        move_as(ZERO_BF16, ZERO_FP32, t);
    else if (t->x_type == ZERO_FP16)
        move_as(ZERO_FP16, ZERO_FP32, t);
    else if (t->out_type == ZERO_BF16)
        move_as(ZERO_FP32, ZERO_BF16, t);
    else if (t->out_type == ZERO_FP16)
        move_as(ZERO_FP32, ZERO_FP16, t);
    else
        move_as(ZERO_FP32, ZERO_FP32, t);
}
