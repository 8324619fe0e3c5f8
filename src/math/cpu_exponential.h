/* cpu_exponential.h - e^x, 2^x and the exact GELU, which compilers vectorise: included by
 * files that are compiled once per instruction set. */
#pragma once

#include "base/fail.h"

/* Adding 1.5 * 2^23 rounds to the nearest integer n and leaves it in the low bits: rintf
 * would be a function call on plain x86-64. */
#define ROUNDING 12582912.0f

/* 2^n by its exponent bits, given n + ROUNDING. */
static inline float power_of_rounded(float shifted)
{
    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + (127u << 23);
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* e^x with a relative error of at most 8.1e-8; 0 where that is below the normal numbers,
 * infinity from 88.37 on. x = n ln 2 + r, |r| <= ln(2)/2; e^r by a polynomial (Cephes
 * expf). */
static inline float exponential(float x)
{
    float shifted = x * 1.44269504f + ROUNDING, n = shifted - ROUNDING;
    float r = x - n * 0.693359375f - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    float e_to_r = p * (r * r) + r + 1.0f;
    float y = e_to_r * power_of_rounded(shifted);
    y = x < -87.33f ? 0.0f : y;
    return x > 88.37f ? INFINITY : y;
}

/* 2^x for x <= 0, with a relative error of at most 1.1e-7; 0 where that is below the normal
 * numbers. The polynomial is the minimax one with 2^0 = 1. */
static inline float power_of_two(float x)
{
    float shifted = x + ROUNDING, r = x - (shifted - ROUNDING);
    float p = 1.5594678e-4f;
    p = p * r + 1.3406643e-3f;
    p = p * r + 9.6176928e-3f;
    p = p * r + 5.5503104e-2f;
    p = p * r + 2.4022653e-1f;
    p = p * r + 6.9314724e-1f;
    p = p * r + 1.0f;
    return x < -126.0f ? 0.0f : p * power_of_rounded(shifted);
}

/* The normal distribution below -|x|, given e^(-x^2/2): that times a polynomial in 1/(1 +
 * 0.35 |x|), which is fitted to a relative error of 3.2e-8 up to |x| = 14. */
static inline float normal_tail(float x, float power)
{
    float t = 1.0f / (1.0f + 0.35f * (x < 0.0f ? -x : x));
    float q = -2.914593941e-2f;
    q = q * t + 1.439717415e-1f;
    q = q * t - 2.557143434e-1f;
    q = q * t + 1.591742609e-1f;
    q = q * t - 2.310990381e-2f;
    q = q * t + 1.055080330e-1f;
    q = q * t + 1.198328603e-1f;
    q = q * t + 1.398618707e-1f;
    q = q * t + 1.396214042e-1f;
    return q * t * power;
}

/* x P(x), P(x) = 0.5 (1 + erf(x/sqrt(2))): within 2.1e-7 |x|, and up to |x| = 4 within
 * 6e-7 of itself. The naive backend has its bits. */
static inline float exact_gelu(float x)
{
    float tail = normal_tail(x, exponential(-0.5f * x * x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

/* P(x) + x P'(x), within 2.5e-7. From 13 on it is 0 or 1, where x e^(-x^2/2) might be NaN. */
static inline float exact_gelu_slope(float x)
{
    float z = x < -13.0f ? -13.0f : x;
    z = z > 13.0f ? 13.0f : z;
    float power = exponential(-0.5f * z * z), tail = normal_tail(z, power);
    return (z < 0.0f ? tail : 1.0f - tail) + z * power * 0.3989422804f;
}
