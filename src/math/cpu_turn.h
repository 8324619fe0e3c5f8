/* cpu_turn.h - sines and cosines, and the pairs of a head that turn by them: included by
 * files that are compiled once per instruction set. */
#pragma once

#include <stdint.h>
#include <string.h>

/* pi/2 in parts of 33 bits: their products with numbers below 2^20 are exact. */
#define QUARTER_1 0x1.921fb544p+0
#define QUARTER_2 0x1.0b4611a6p-34
#define QUARTER_3 0x1.3198a2e037073p-69

/* Adding 1.5 * 2^52 rounds to the nearest integer, and leaves it in the low bits. */
#define ROUNDING_DOUBLE 0x1.8p52

/* Of an angle whose size is below 10^6: Taylor's polynomials of the distance to the nearest
 * quarter turn, whose next terms are below 2^-54. So fp32 gets the exact value rounded, but
 * for one value in 10^8. */
static inline void sine_and_cosine(float angle, float *sine, float *cosine)
{
    const double x = (double)angle, shifted = x * 0x1.45f306dc9c883p-1 + ROUNDING_DOUBLE;
    const double n = shifted - ROUNDING_DOUBLE;
    const double r = x - n * QUARTER_1 - n * QUARTER_2 - n * QUARTER_3, z = r * r;
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
    *sine = (float)(quarter & 2 ? -of_sine : of_sine);
    *cosine = (float)((quarter + 1) & 2 ? -of_cosine : of_cosine);
}

static void angles(int64_t pairs, float t, const float *frequency, float *cosine,
                   float *sine)
{
#pragma omp simd
    for (int64_t i = 0; i < pairs; i++)
        sine_and_cosine(t * frequency[i], sine + i, cosine + i);
}

static void turn(int64_t pairs, const float *cosine, const float *sine, float *x)
{
#pragma omp simd
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[i], b = x[i + pairs];
        x[i] = a * cosine[i] - b * sine[i];
        x[i + pairs] = b * cosine[i] + a * sine[i];
    }
}
