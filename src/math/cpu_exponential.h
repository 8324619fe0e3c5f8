/* cpu_exponential.h - e^x and 2^x, which compilers vectorise: included by files that are
 * compiled once per instruction set. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

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
