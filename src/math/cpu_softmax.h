/* cpu_softmax.h - softmax over attention's scores: included by cpu_kernels.c, which is
 * compiled once per instruction set.
 *
 * Sums and maxima have 16 partial ones (lanes), which are folded in halves, so every vector
 * width gives the same bits. Scores right of the diagonal are set first: rows are then
 * whole lanes. */
#pragma once

#include "base/elementary.h"
#include "math/cpu_exponential.h"
#include "math/cpu_pieces.h"

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

/* The end of row r: whole lanes to its diagonal. Of 64 keys a third lies beyond. */
static int64_t row_end(const zero_cpu_scores *t, int64_t r)
{
    return zero_round_up(zero_min(t->first + r + 1, t->len), LANES);
}

/* Sets the scores right of the diagonal: to `value` in its lanes, to 0 in those of the
 * panel that follow. */
static void fill_above(const zero_cpu_scores *t, float value, float *x)
{
    const int64_t end = zero_round_up(t->len, LANES);
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const int64_t n = t->first + r + 1, own = row_end(t, r);
        float *last = x + own - LANES;
        const int kept = (int)(n - (own - LANES));
#pragma omp simd
        for (int l = 0; l < LANES; l++) last[l] = l < kept ? last[l] : value;
        for (int64_t j = own; j < end; j += LANES)
            for (int l = 0; l < LANES; l++) x[j + l] = 0.0f;
    }
}

/* NaN is never the largest. */
static void largest_of_rows(const zero_cpu_scores *t, const float *x, all_lanes most)
{
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const int64_t end = row_end(t, r);
        float a[LANES];
        for (int l = 0; l < LANES; l++) a[l] = -INFINITY;
        for (int64_t j = 0; j < end; j += LANES)
#pragma omp simd
            for (int l = 0; l < LANES; l++) a[l] = x[j + l] > a[l] ? x[j + l] : a[l];
        for (int l = 0; l < LANES; l++) most[r][l] = a[l];
    }
    fold_largest(t->rows, most);
}

/* x = 2^(x - most); total += the rows' sums of SCORES from x[at] on. */
static void powers_of_rows(const zero_cpu_scores *t, int64_t at, all_lanes most, float *x,
                           double *total)
{
    all_lanes sums;
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const int64_t end = zero_min(row_end(t, r), at + SCORES);
        const float least = most[r][0];
        float s[LANES] = {0};
        for (int64_t j = at; j < end; j += LANES)
            for (int l = 0; l < LANES; l++) {
                x[j + l] = power_of_two(x[j + l] - least);
                s[l] += x[j + l];
            }
        for (int l = 0; l < LANES; l++) sums[r][l] = s[l];
    }
    fold_sums(t->rows, sums);
    for (int64_t r = 0; r < t->rows; r++) total[r] += (double)sums[r][0];
}

static void softmax(const zero_cpu_scores *t, float *x, float *lse, float *over_sum)
{
    all_lanes most;
    double total[ZERO_SCORE_ROWS] = {0};
    fill_above(t, -INFINITY, x); /* 2 to that power is 0 */
    largest_of_rows(t, x, most);
    for (int64_t at = 0; at < t->len; at += SCORES) powers_of_rows(t, at, most, x, total);
    for (int64_t r = 0; r < t->rows; r++) {
        lse[r] = (float)((double)most[r][0] * LOG_2 + zero_log(total[r]));
        over_sum[r] = (float)(1.0 / total[r]);
    }
}

static void softmax_again(const zero_cpu_scores *t, const float *lse, float *x)
{
    fill_above(t, -INFINITY, x);
    for (int64_t r = 0; r < t->rows; r++, x += t->stride) {
        const float log2_of_sum = (float)((double)lse[r] / LOG_2);
        const int64_t end = row_end(t, r);
#pragma omp simd
        for (int64_t j = 0; j < end; j++) x[j] = power_of_two(x[j] - log2_of_sum);
    }
}

static void softmax_backward(const zero_cpu_scores *t, const float *mean, const float *p,
                             float *dp)
{
    fill_above(t, 0.0f, dp);
    for (int64_t r = 0; r < t->rows; r++, p += t->stride, dp += t->stride) {
        const int64_t end = row_end(t, r);
        const float m = mean[r];
#pragma omp simd
        for (int64_t j = 0; j < end; j++) dp[j] = p[j] * (dp[j] - m);
    }
}

INLINE void dots_of(zero_type type, const zero_cpu_pieces *t, const float *a, int64_t lda,
                    all_lanes sums)
{
    const int64_t n = t->n;
    for (int64_t r = 0; r < t->rows; r++, a += lda) {
        const void *x = piece_at(type, t->x, r, t->x_stride, 0);
        const bool fetch = r + PIECES_AHEAD < t->x_rows;
        floats s[LANES / WIDTH] = {{0}};
        int64_t c = 0;
        for (; c + LANES <= n; c += LANES) {
            if (fetch) fetch_line(type, false, x, t->x_stride, c);
            for (int p = 0; p < LANES / WIDTH; p++)
                s[p] += load(ZERO_FP32, a, c + p * WIDTH) * load(type, x, c + p * WIDTH);
        }
        for (int p = 0; c < n; p++, c += WIDTH) {
            const int64_t some = zero_min(n - c, WIDTH);
            s[p] += load_some(ZERO_FP32, a, c, some) * load_some(type, x, c, some);
        }
        for (int p = 0; p < LANES / WIDTH; p++) *(floats *)(sums[r] + p * WIDTH) = s[p];
    }
}

static void dots(const zero_cpu_pieces *t, const float *a, int64_t lda, float *out)
{
    all_lanes sums;
    if (t->x_type == ZERO_BF16)
        dots_of(ZERO_BF16, t, a, lda, sums);
    else if (t->x_type == ZERO_FP16)
        dots_of(ZERO_FP16, t, a, lda, sums);
    else
        dots_of(ZERO_FP32, t, a, lda, sums);
    fold_sums(t->rows, sums);
    for (int64_t r = 0; r < t->rows; r++) out[r] = sums[r][0];
}
