/* cpu_softmax.h - softmax over attention's scores: included by cpu_kernels.c, which is compiled
 * once per instruction set.
 *
 * Sums and maxima have 16 partial ones (lanes), which are folded in halves, so every vector width
 * gives the same bits. Scores right of the diagonal are set first: rows are then whole lanes. */
#pragma once

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "math/cpu_exponential.h"
#include "math/cpu_scores.h"

#define LANES  16
#define SCORES 1024                /* summed in single precision at a time */
#define LOG_2  0.69314718055994531 /* the natural logarithm of 2 */

/* The lanes of all rows: folding one row at a time is latency-bound. */
typedef float all_lanes[ZERO_SCORE_ROWS][LANES];

static inline void add_half(int64_t rows, int half, all_lanes s)
{
    for (int64_t r = 0; r < rows; r++)
        for (int l = 0; l < half; l++) s[r][l] += s[r][l + half];
}

static void fold_sums(int64_t rows, all_lanes s)
{
    add_half(rows, 8, s);
    add_half(rows, 4, s);
    add_half(rows, 2, s);
    add_half(rows, 1, s);
}

static inline void larger_half(int64_t rows, int half, all_lanes s)
{
    for (int64_t r = 0; r < rows; r++)
        for (int l = 0; l < half; l++)
            s[r][l] = s[r][l + half] > s[r][l] ? s[r][l + half] : s[r][l];
}

static void fold_largest(int64_t rows, all_lanes s)
{
    larger_half(rows, 8, s);
    larger_half(rows, 4, s);
    larger_half(rows, 2, s);
    larger_half(rows, 1, s);
}

/* Sets the scores right of the diagonal, to the end of whole lanes, which it returns. */
static int64_t fill_above(const zero_cpu_scores *t, float value, float *x)
{
    const int64_t end = zero_round_up(t->len, LANES);
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const int64_t n = t->first + r + 1;
        for (int64_t j = n / LANES * LANES; j < end; j += LANES) {
            const int kept = j < n ? (int)(n - j) : 0;
#pragma omp simd
            for (int l = 0; l < LANES; l++) x[j + l] = l < kept ? x[j + l] : value;
        }
    }
    return end;
}

/* NaN is never the largest. */
static void largest_of_rows(const zero_cpu_scores *t, int64_t end, const float *x,
                            all_lanes most)
{
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        float a[LANES];
        for (int l = 0; l < LANES; l++) a[l] = -INFINITY;
        for (int64_t j = 0; j < end; j += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) a[l] = x[j + l] > a[l] ? x[j + l] : a[l];
        memcpy(most[r], a, sizeof a);
    }
    fold_largest(t->rows, most);
}

/* x = 2^(x - most); total += the rows' sums of x[at..end), at most SCORES. */
static void powers_of_rows(const zero_cpu_scores *t, int64_t at, int64_t end,
                           all_lanes most, float *x, double *total)
{
    all_lanes sums;
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const float least = most[r][0];
        float s[LANES] = {0};
        for (int64_t j = at; j < end; j += LANES)
            for (int l = 0; l < LANES; l++) {
                x[j + l] = power_of_two(x[j + l] - least);
                s[l] += x[j + l];
            }
        memcpy(sums[r], s, sizeof s);
    }
    fold_sums(t->rows, sums);
    for (int64_t r = 0; r < t->rows; r++) total[r] += (double)sums[r][0];
}

static void softmax(const zero_cpu_scores *t, float *x, float *lse, float *over_sum)
{
    all_lanes most;
    double total[ZERO_SCORE_ROWS] = {0};
    const int64_t end = fill_above(t, -INFINITY, x); /* 2 to that power is 0 */
    largest_of_rows(t, end, x, most);
    for (int64_t at = 0; at < end; at += SCORES)
        powers_of_rows(t, at, at + zero_min(end - at, SCORES), most, x, total);
    for (int64_t r = 0; r < t->rows; r++) {
        lse[r] = (float)((double)most[r][0] * LOG_2 + log(total[r]));
        over_sum[r] = (float)(1.0 / total[r]);
    }
}

static void softmax_again(const zero_cpu_scores *t, const float *lse, float *x)
{
    const int64_t end = fill_above(t, -INFINITY, x);
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const float log2_of_sum = (float)((double)lse[r] / LOG_2);
#pragma omp simd
        for (int64_t j = 0; j < end; j++) x[j] = power_of_two(x[j] - log2_of_sum);
    }
}

static void softmax_backward(const zero_cpu_scores *t, const float *mean, const float *p,
                             float *dp)
{
    const int64_t end = fill_above(t, 0.0f, dp);
    for (int64_t r = 0; r < t->rows; r++, p += t->stride, dp += t->stride) {
        const float m = mean[r];
#pragma omp simd
        for (int64_t j = 0; j < end; j++) dp[j] = p[j] * (dp[j] - m);
    }
}

static void dots(int64_t rows, int64_t n, const float *a, int64_t lda, const float *b,
                 int64_t ldb, float *out)
{
    all_lanes sums;
    for (int64_t r = 0; r < rows; r++, a += lda, b += ldb) {
        float s[LANES] = {0};
        int64_t c = 0;
        for (; c + LANES <= n; c += LANES)
            for (int l = 0; l < LANES; l++) s[l] += a[c + l] * b[c + l];
        for (int l = 0; c < n; c++, l++) s[l] += a[c] * b[c];
        memcpy(sums[r], s, sizeof s);
    }
    fold_sums(rows, sums);
    for (int64_t r = 0; r < rows; r++) out[r] = sums[r][0];
}
