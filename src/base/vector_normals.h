/* vector_normals.h - standard normal numbers, several at a time, to 2^-45 of their values:
 * Box and Muller's method as in rng.c.
 *
 *     radius = sqrt(-2 log v)      v = 1 - u = 2^e m, sqrt(1/2) <= m < sqrt(2); log m by s
 *                                  = f/(2+f)
 *     cos, sin of the angle        the angle less k pi/2, |rest| <= pi/4; then by the
 *                                  quarter k mod 4
 *
 * The operations and polynomials are those of fdlibm (e_log.c, k_sin.c, k_cos.c, Sun
 * Microsystems 1993), whose errors are below 2^-52 of each result; with the square root and
 * the product they add up to less than 2^-49. There is no table and no branch. */
#pragma once

#include "base/vector_lanes.h"

typedef uint64_t bits64 __attribute__((vector_size(4 * WIDTH), aligned(8), may_alias));
typedef float half_floats __attribute__((vector_size(2 * WIDTH), may_alias));
typedef uint32_t half_bits __attribute__((vector_size(2 * WIDTH), may_alias));

#define PAIRS (WIDTH / 2) /* doubles in a register */

/* In units of the value, and of 1: the rest of an angle is exact to 2^-82 only. */
#define RELATIVE_ERROR 0x1p-45
#define ABSOLUTE_ERROR 0x1p-75

INLINE doubles root(doubles x)
{
#if defined(ROOT)
    return (doubles)ROOT((DOUBLES)x);
#else
    for (int l = 0; l < PAIRS; l++) x[l] = sqrt(x[l]);
    return x;
#endif
}

/* The upper 53 bits as a number from 0 to 1, exactly: each half becomes the last bits of a
 * large double. */
INLINE doubles unit(bits64 word)
{
    bits64 x = word >> 11;
    doubles upper = (doubles)(x >> 32 | 0x4530000000000000); /* 2^84 + upper 2^32 */
    doubles lower = (doubles)((x & 0xffffffff) | 0x4330000000000000); /* 2^52 + lower */
    return ((upper - (0x1p84 + 0x1p52)) + lower) * 0x1p-53;
}

/* 2^-53 <= v <= 1 */
INLINE doubles logarithm(doubles v)
{
    const uint64_t root_of_half = 0x3fe6a09e667f3bcd, bias = UINT64_C(1024) << 52;
    bits64 x = (bits64)v, shifted = x - root_of_half + bias;
    doubles e = (doubles)(shifted >> 52 | 0x4330000000000000) - (0x1p52 + 1024.0);
    doubles m = (doubles)(x - ((shifted & 0xfff0000000000000) - bias));
    doubles f = m - 1.0, s = f / (m + 1.0), z = s * s;
    doubles r = z * 1.479819860511658591e-01 + 1.531383769920937332e-01;
    r = z * r + 1.818357216161805012e-01;
    r = z * r + 2.222219843214978396e-01;
    r = z * r + 2.857142874366239149e-01;
    r = z * r + 3.999999999940941908e-01;
    r = z * r + 6.666666666666735130e-01;
    return e * 6.93147180559945286227e-01 + s * (z * r + 2.0);
}

/* |x| <= pi/4 */
INLINE doubles small_sine(doubles x, doubles z)
{
    doubles r = z * 1.58969099521155010221e-10 - 2.50507602534068634195e-08;
    r = z * r + 2.75573137070700676789e-06;
    r = z * r - 1.98412698298579493134e-04;
    r = z * r + 8.33333333332248946124e-03;
    r = z * r - 1.66666666666666324348e-01;
    return x + x * z * r;
}

INLINE doubles small_cosine(doubles z)
{
    doubles r = z * -1.13596475577881948265e-11 + 2.08757232129817482790e-09;
    r = z * r - 2.75573143513906633035e-07;
    r = z * r + 2.48015872894767294178e-05;
    r = z * r - 1.38888888888741095749e-03;
    r = z * r + 4.16666666666666019037e-02;
    return 1.0 - (z * 0.5 - z * z * r);
}

/* 0 <= angle <= 2 pi. pi/2 has two parts: k times the first one is exact. */
INLINE void sine_and_cosine(doubles angle, doubles *sine, doubles *cosine)
{
    doubles shifted = angle * 6.36619772367581382433e-01 + 0x1.8p52; /* rounds to k */
    doubles k = shifted - 0x1.8p52;
    doubles rest = angle - k * 1.57079632673412561417e+00;
    rest = rest - k * 6.07710050650619224932e-11;
    doubles z = rest * rest;
    bits64 s = (bits64)small_sine(rest, z), c = (bits64)small_cosine(z);
    bits64 quarter = (bits64)shifted, odd = -(quarter & 1);
    *sine = (doubles)(((s & ~odd) | (c & odd)) ^ (quarter & 2) << 62);
    *cosine = (doubles)(((c & ~odd) | (s & odd)) ^ ((quarter + 1) & 2) << 62);
}

/* Both as floats, side by side. */
INLINE void put_pairs(doubles even, doubles odd, float *out)
{
    half_bits first = (half_bits) __builtin_convertvector(even, half_floats);
    half_bits second = (half_bits) __builtin_convertvector(odd, half_floats);
    bits64 pairs = __builtin_convertvector(first, bits64) |
                   __builtin_convertvector(second, bits64) << 32;
    memcpy(out, &pairs, sizeof pairs);
}

INLINE doubles error_of(doubles x)
{
    doubles magnitude = (doubles)((bits64)x & 0x7fffffffffffffff);
    return magnitude * RELATIVE_ERROR + ABSOLUTE_ERROR;
}

/* A register of pairs: what the exact numbers cannot fall below and not exceed. */
INLINE void normal_pairs(const uint64_t *radii, const uint64_t *angles, float *least,
                         float *most)
{
    bits64 first, second;
    doubles sine, cosine;
    memcpy(&first, radii, sizeof first);
    memcpy(&second, angles, sizeof second);
    doubles radius = root(logarithm(1.0 - unit(first)) * -2.0);
    sine_and_cosine(unit(second) * 6.283185307179586476925, &sine, &cosine);
    doubles even = radius * cosine, odd = radius * sine;
    doubles even_error = error_of(even), odd_error = error_of(odd);
    put_pairs(even - even_error, odd - odd_error, least);
    put_pairs(even + even_error, odd + odd_error, most);
}
