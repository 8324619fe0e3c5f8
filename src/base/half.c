#include "base/half.h"

#include <string.h>

#define SIGN     0x80000000u
#define INFINITE 0x7f800000u

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

float zero_from_bf16(uint16_t x)
{
    return float_of((uint32_t)x << 16);
}

uint16_t zero_to_bf16(float x)
{
    uint32_t bits = bits_of(x), magnitude = bits & ~SIGN;
    if (magnitude > INFINITE) return (uint16_t)(bits >> 16 | 0x40);
    if (magnitude < 0x00800000u) return (uint16_t)(bits >> 16 & 0x8000);
    /* Half of the last kept bit, less one if that bit is even: ties then go to even. */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float zero_from_fp16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31;
    uint32_t mantissa = x & 0x3ff;
    if (exponent == 31)
        return float_of(sign | INFINITE | mantissa << 13 | (mantissa ? 0x400000 : 0));
    if (exponent > 0) return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float tiny = (float)mantissa * 0x1p-24f;
    return float_of(sign | bits_of(tiny));
}

uint16_t zero_to_fp16(float x)
{
    uint32_t bits = bits_of(x), magnitude = bits & ~SIGN, sign = bits >> 16 & 0x8000;
    if (magnitude > INFINITE) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); /* 65520: the tie */
    if (magnitude < 0x38800000u) {
        /* Below 2^-14, fp16 counts in units of 2^-24, the spacing of floats at 0.5: the
         * addition rounds. */
        uint32_t units = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        return (uint16_t)(sign | units);
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - (112u << 23)) >> 13));
}
