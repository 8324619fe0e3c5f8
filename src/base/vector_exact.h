/* vector_exact.h - squares added without rounding: included by vector_kernels.c, which is compiled
 * once per instruction set.
 *
 * The square of a float is exact in double. Adding s = 1.5 * 2^(52 + e) rounds it to a multiple of
 * 2^e, subtracting s leaves that, and what was rounded away is exact again. So a square is cut into
 * three windows of 40 bits below 2^top, and each window's sum of up to 2^12 numbers has no more than
 * 53 bits. Anything below the last window shows as a rest that is not zero.
 *
 * (Demmel and Nguyen, Fast reproducible floating-point summation, 2013.) */
#pragma once

#include "base/vector.h"
#include "base/vector_lanes.h"

#define EXACT_BITS 40
#define EXACT_LEAST \
    (-200) /* of top: what is below all windows is then no square of a float */
#define EXACT_NOT_FINITE 1000 /* a top that no number has */

typedef struct {
    doubles s[ZERO_VECTOR_WINDOWS], sum[ZERO_VECTOR_WINDOWS][2];
    ints rest;
} exact_windows;

INLINE ints larger_magnitude(ints most, floats x)
{
    const ints m = (ints)x & 0x7fffffff;
    return (ints)choose(m > most, (bits32)m, (bits32)most);
}

/* The least even exponent whose power of two is larger than all squares. */
INLINE int top_exponent(zero_type type, int64_t n, const void *x, floats last)
{
    ints most = larger_magnitude((ints){0}, last);
    for (int64_t i = 0; i < n; i += WIDTH) most = larger_magnitude(most, load(type, x, i));
    int32_t largest = 0;
    for (int l = 0; l < WIDTH; l++) largest = most[l] > largest ? most[l] : largest;
    const int exponent = largest >> 23; /* |x| < 2^(exponent - 126) */
    if (exponent == 0xff) return EXACT_NOT_FINITE;
    const int top = 2 * (exponent - 126);
    return top < EXACT_LEAST ? EXACT_LEAST : top;
}

INLINE void cut_half(doubles x, int half, exact_windows *w)
{
    doubles rest = x * x;
    for (int k = 0; k < ZERO_VECTOR_WINDOWS; k++) {
        const doubles part = (rest + w->s[k]) - w->s[k];
        w->sum[k][half] += part;
        rest -= part;
    }
    w->rest |= (ints)rest;
}

INLINE void cut(floats x, exact_windows *w)
{
    cut_half(low(x), 0, w);
    cut_half(high(x), 1, w);
}

INLINE double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The sum over lanes is exact in double as well. */
INLINE int64_t count_of(const doubles sum[2], int exponent)
{
    const doubles both = sum[0] + sum[1];
    double total = 0.0;
    for (int l = 0; l < WIDTH / 2; l++) total += both[l];
    return (int64_t)(total * power_of_two(-exponent));
}

/* The next numbers are prefetched: they are read twice, first for their largest. */
INLINE bool cut_squares(zero_type type, int64_t n, const void *x, floats last, int top,
                        zero_vector_windows *sum)
{
    const size_t size = type == ZERO_FP32 ? 4 : 2;
    exact_windows w = {0};
    for (int k = 0; k < ZERO_VECTOR_WINDOWS; k++) {
        sum->exponent[k] = top - (k + 1) * EXACT_BITS;
        w.s[k] = (doubles){0} + 1.5 * power_of_two(52 + sum->exponent[k]);
    }
    cut(last, &w);
    for (int64_t i = 0; i < n; i += WIDTH) {
        __builtin_prefetch((const char *)x + (size_t)(i + ZERO_VECTOR_EXACT) * size, 0, 3);
        cut(load(type, x, i), &w);
    }
    bool exact = true;
    for (int l = 0; l < WIDTH; l++) exact &= w.rest[l] == 0;
    for (int k = 0; k < ZERO_VECTOR_WINDOWS; k++)
        sum->count[k] = count_of(w.sum[k], sum->exponent[k]);
    return exact;
}
