/* cpu_rows.h - products of one vector and a matrix, and of a matrix and one vector: included by
 * cpu_kernels.c, which is compiled once per instruction set. The matrix is read once, as it is, row by
 * row; 16-bit numbers are widened on their way into a register.
 *
 * add_rows() adds to each element in the order of the rows. row_dots() has 32 partial sums, folded in
 * halves. So neither the vector width nor a cut shows in the bits. */
#pragma once

#include <string.h>

#include "base/number.h"
#include "base/vector_lanes.h"
#include "math/cpu_sums.h"

/* Registers of sums side by side: their additions do not wait for each other. */
#define BESIDE 4

/* `n` < WIDTH numbers from x[i] on, then zeros. */
INLINE floats load_rest(zero_type type, const void *x, int64_t i, int64_t n)
{
    char rest[WIDTH * sizeof(float)] = {0};
    const size_t size = zero_type_size(type);
    memcpy(rest, (const char *)x + (size_t)i * size, (size_t)n * size);
    return load(type, rest, 0);
}

INLINE void add_rows_of(zero_type type, int64_t rows, int64_t n, const float *factor,
                        const void *b, int64_t stride, float *out)
{
    int64_t j = 0;
    for (; j + BESIDE * WIDTH <= n; j += BESIDE * WIDTH) {
        floats sum[BESIDE];
        memcpy(sum, out + j, sizeof sum);
        for (int64_t r = 0; r < rows; r++)
            for (int k = 0; k < BESIDE; k++)
                sum[k] += factor[r] * load(type, b, r * stride + j + k * WIDTH);
        memcpy(out + j, sum, sizeof sum);
    }
    for (; j < n; j += WIDTH) {
        const int64_t len = zero_min(n - j, WIDTH);
        floats sum = load_rest(ZERO_FP32, out, j, len);
        for (int64_t r = 0; r < rows; r++)
            sum += factor[r] * load_rest(type, b, r * stride + j, len);
        memcpy(out + j, &sum, (size_t)len * sizeof *out);
    }
}

static void add_rows(int64_t rows, int64_t n, const float *factor, zero_type type,
                     const void *b, int64_t stride, float *out)
{
    switch (type) {
    case ZERO_FP32: add_rows_of(ZERO_FP32, rows, n, factor, b, stride, out); break;
    case ZERO_BF16: add_rows_of(ZERO_BF16, rows, n, factor, b, stride, out); break;
    default: add_rows_of(ZERO_FP16, rows, n, factor, b, stride, out); break;
    }
}

/* The sum over n of x * row r of b. */
INLINE float dot_of_row(zero_type type, int64_t n, const float *x, const void *b,
                        int64_t at)
{
    floats part[PARTS] = {{0}};
    float lane[WIDTH];
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int p = 0; p < PARTS; p++)
            part[p] +=
                load(ZERO_FP32, x, i + p * WIDTH) * load(type, b, at + i + p * WIDTH);
    for (int p = 0; i < n; p++, i += WIDTH) {
        const int64_t len = zero_min(n - i, WIDTH);
        part[p] += load_rest(ZERO_FP32, x, i, len) * load_rest(type, b, at + i, len);
    }
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++) part[p] += part[p + half];
    memcpy(lane, part, sizeof lane);
    for (int half = WIDTH / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

static void row_dots(int64_t rows, int64_t n, const float *x, zero_type type, const void *b,
                     int64_t stride, float *out)
{
    for (int64_t r = 0; r < rows; r++) switch (type) {
        case ZERO_FP32: out[r] = dot_of_row(ZERO_FP32, n, x, b, r * stride); break;
        case ZERO_BF16: out[r] = dot_of_row(ZERO_BF16, n, x, b, r * stride); break;
        default: out[r] = dot_of_row(ZERO_FP16, n, x, b, r * stride); break;
        }
}
