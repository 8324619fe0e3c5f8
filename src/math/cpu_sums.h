/* cpu_sums.h - sums, dot products and maxima in one fixed order: included by files that are
 * compiled once per instruction set. */
#pragma once

#include "base/number.h"
#include "base/vector_lanes.h"

/* Terms are computed, then summed, a chunk at a time: they stay in L1. */
#define CHUNK 1024

/* Partial sums run side by side, in PARTS registers. */
#define SUMS  32
#define PARTS (SUMS / WIDTH)

INLINE void add_to_parts(floats part[PARTS], const float *x)
{
    for (int p = 0; p < PARTS; p++) part[p] += *(const floats *)(x + p * WIDTH);
}

/* The sum of at most CHUNK numbers: partial sum l adds elements l, l + 32, ..., then they
 * are folded in halves. The order is fixed, so every vector width gives the same bits. */
static float sum_chunk(int64_t n, const float *x)
{
    floats part[PARTS] = {{0}};
    float lane[WIDTH];
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS) add_to_parts(part, x + i);
    if (i < n) {
        float rest[SUMS] = {0};
        for (int l = 0; i < n; i++, l++) rest[l] = x[i];
        add_to_parts(part, rest);
    }
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int p = 0; p < half; p++) part[p] += part[p + half];
    memcpy(lane, part, sizeof lane);
    for (int half = WIDTH / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

static int64_t chunk_len(int64_t n, int64_t at)
{
    return zero_min(n - at, CHUNK);
}

/* Chunks are added in double: a row of 50 257 exponentials is then as exact as a short
 * one. */
static double sum(int64_t n, const float *x)
{
    double total = 0.0;
    for (int64_t at = 0; at < n; at += CHUNK)
        total += (double)sum_chunk(chunk_len(n, at), x + at);
    return total;
}

static double dot(int64_t n, const float *a, const float *b)
{
    float term[CHUNK];
    double total = 0.0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t len = chunk_len(n, at);
#pragma omp simd
        for (int64_t i = 0; i < len; i++) term[i] = a[at + i] * b[at + i];
        total += (double)sum_chunk(len, term);
    }
    return total;
}

/* NaN is never the largest; the sum of exponentials becomes NaN instead. */
static float largest(int64_t n, const float *x)
{
    float most[SUMS];
    for (int l = 0; l < SUMS; l++) most[l] = -INFINITY;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int l = 0; l < SUMS; l++) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
    for (int l = 0; i < n; i++, l++) most[l] = x[i] > most[l] ? x[i] : most[l];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            most[l] = most[l + half] > most[l] ? most[l + half] : most[l];
    return most[0];
}
