/* vector_exact.h - squares added without rounding: included by vector_kernels.c, which is
 * compiled once per instruction set.
 *
 * The square of a float is exact in double. Adding s = 1.5 * 2^(52 + e) rounds it to a
 * multiple of 2^e, subtracting s leaves that, and what was rounded away is exact again. So
 * a square is cut into three windows of 40 bits below 2^top, and each window's sum of up to
 * 2^12 numbers has no more than 53 bits. The largest and the least number tell whether the
 * windows hold all bits.
 *
 * (Demmel and Nguyen, Fast reproducible floating-point summation, 2013.) */
#pragma once

#include "base/vector.h"
#include "base/vector_lanes.h"

#define EXACT_BITS 40
#define EXACT_ALL  (ZERO_VECTOR_WINDOWS * EXACT_BITS)
#define EXACT_LEAST \
    (-200) /* of top: what is below all windows is then no square of a float */

/* ---- the range of numbers ---- */

/* Magnitudes, as the bits of floats are ordered like them. Those of numbers that are not 0
 * are turned round, to become the largest; 0 becomes the least of all integers. */
typedef struct {
    ints largest, least;
} exact_range;

INLINE exact_range widen_range(exact_range r, floats x)
{
    const bits32 magnitude = (bits32)x & 0x7fffffff;
    return (exact_range){larger(r.largest, (ints)magnitude),
                         larger(r.least, (ints)(0x80000000 - magnitude))};
}

static int32_t largest_lane(ints x)
{
    int32_t most = x[0];
    for (int l = 1; l < WIDTH; l++) most = x[l] > most ? x[l] : most;
    return most;
}

/* The exponent of the float's last place, given its bits. */
static int last_place(zero_type type, int32_t magnitude)
{
    const int fraction = type == ZERO_FP32 ? 23 : type == ZERO_BF16 ? 7 : 10;
    const int exponent = magnitude >> 23;
    return (exponent > 0 ? exponent : 1) - 127 - fraction;
}

/* Sets the least even exponent whose power of two is larger than all squares. False if the
 * windows below do not hold them. */
static bool find_top(zero_type type, exact_range r, int *top)
{
    const int32_t largest = largest_lane(r.largest), least = largest_lane(r.least);
    const int exponent = largest >> 23; /* |x| < 2^(exponent - 126) */
    if (exponent == 0xff) return false;
    *top = 2 * (exponent - 126);
    if (*top < EXACT_LEAST) *top = EXACT_LEAST;
    if (largest == 0) return true;
    const int32_t magnitude = (int32_t)(0x80000000 - (uint32_t)least);
    return *top - EXACT_ALL <= 2 * last_place(type, magnitude);
}

/* ---- sums ---- */

typedef struct {
    doubles s[ZERO_VECTOR_WINDOWS - 1], sum[ZERO_VECTOR_WINDOWS][2];
} exact_windows;

/* The last window takes all that the others leave. */
INLINE void cut_half(doubles x, int half, exact_windows *w)
{
    doubles rest = x * x;
    for (int k = 0; k + 1 < ZERO_VECTOR_WINDOWS; k++) {
        const doubles part = (rest + w->s[k]) - w->s[k];
        w->sum[k][half] += part;
        rest -= part;
    }
    w->sum[ZERO_VECTOR_WINDOWS - 1][half] += rest;
}

INLINE void cut(floats x, exact_windows *w)
{
    cut_half(low(x), 0, w);
    cut_half(high(x), 1, w);
}

static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The sum over lanes is exact in double as well. */
static int64_t count_of(const doubles sum[2], int exponent)
{
    const doubles both = sum[0] + sum[1];
    double total = 0.0;
    for (int l = 0; l < WIDTH / 2; l++) total += both[l];
    return (int64_t)(total * power_of_two(-exponent));
}

INLINE exact_windows windows_below(int top)
{
    exact_windows w = {0};
    for (int k = 0; k + 1 < ZERO_VECTOR_WINDOWS; k++)
        w.s[k] = (doubles){0} + 1.5 * power_of_two(52 + top - (k + 1) * EXACT_BITS);
    return w;
}

static void count_windows(const exact_windows *w, int top, zero_vector_windows *sum)
{
    for (int k = 0; k < ZERO_VECTOR_WINDOWS; k++) {
        sum->exponent[k] = top - (k + 1) * EXACT_BITS;
        sum->count[k] = count_of(w->sum[k], sum->exponent[k]);
    }
}
