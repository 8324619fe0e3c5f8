/* elementary.h - logarithm, exponential, powers, sine and cosine with the same bits on
 * every machine.
 *
 * The C library's round differently from one CPU and version to the next. These are plain
 * sums and products of doubles in a fixed order, which IEEE 754 rounds one way; their
 * errors are below two units in the last place, so a float rounded from them is the exact
 * value rounded, but for a few in 10^9. What takes part in a digest uses these. */
#pragma once

#include "base/fail.h"

/* As in the C library: of 0 it is -infinity, of negative numbers NaN. */
double zero_log(double x);
/* 0 below -708, infinity above 709.7 */
double zero_exp(double x);

/* x^n by squaring, n >= 0 */
static inline double zero_power(double x, int64_t n)
{
    double power = 1.0;
    for (; n > 0; n /= 2, x *= x)
        if (n % 2) power *= x;
    return power;
}

/* pi/2 in parts of 33 bits: their products with numbers below 2^20 are exact. */
#define ZERO_QUARTER_1 0x1.921fb544p+0
#define ZERO_QUARTER_2 0x1.0b4611a6p-34
#define ZERO_QUARTER_3 0x1.3198a2e037073p-69

/* The sine and cosine of an angle, |angle| < 10^6, by Taylor's polynomials of its distance to
 * the nearest quarter turn; their next terms are below 2^-54. Compilers vectorise it. */
static inline void zero_sine_cosine(double angle, double *sine, double *cosine)
{
    /* Adding 1.5 * 2^52 rounds to the nearest integer, and leaves it in the low bits. */
    const double rounding = 0x1.8p52, shifted = angle * 0x1.45f306dc9c883p-1 + rounding;
    const double n = shifted - rounding;
    const double r = angle - n * ZERO_QUARTER_1 - n * ZERO_QUARTER_2 - n * ZERO_QUARTER_3,
                 z = r * r;
    double s = -1.0 / 1307674368000.0, c = 1.0 / 20922789888000.0;
    s = s * z + 1.0 / 6227020800.0;
    c = c * z - 1.0 / 87178291200.0;
    s = s * z - 1.0 / 39916800.0;
    c = c * z + 1.0 / 479001600.0;
    s = s * z + 1.0 / 362880.0;
    c = c * z - 1.0 / 3628800.0;
    s = s * z - 1.0 / 5040.0;
    c = c * z + 1.0 / 40320.0;
    s = s * z + 1.0 / 120.0;
    c = c * z - 1.0 / 720.0;
    s = s * z - 1.0 / 6.0;
    c = c * z + 1.0 / 24.0;
    s = s * z * r + r;
    c = c * z * z - 0.5 * z + 1.0;
    uint64_t quarter;
    memcpy(&quarter, &shifted, sizeof quarter);
    const double of_sine = quarter & 1 ? c : s, of_cosine = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -of_sine : of_sine;
    *cosine = (quarter + 1) & 2 ? -of_cosine : of_cosine;
}
