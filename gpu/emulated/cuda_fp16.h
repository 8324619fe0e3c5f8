/* cuda_fp16.h - numbers of 16 bits in IEEE's format. They are stored and converted, not computed
 * with: a kernel of ours computes in fp32. So there are no operators, and no conversion happens
 * unless it is written. */
#pragma once

#include <cstdint>

#include "gpu/emulated/intrinsics.h"

struct __half {
    uint16_t bits;

    __half() = default;
    explicit __half(float x);
    explicit operator float() const;
};
typedef __half half;

struct __attribute__((aligned(4))) __half2 {
    __half x, y;
};
typedef __half2 half2;

inline __half __ushort_as_half(unsigned short bits)
{
    __half h;
    h.bits = bits;
    return h;
}

inline unsigned short __half_as_ushort(__half h)
{
    return h.bits;
}

/* To nearest, ties to even; denormals are kept. A product with a power of two moves the exponents of
 * both formats, denormals included, onto each other. */
inline float __half2float(__half h)
{
    const uint32_t magnitude = (uint32_t)(h.bits & 0x7fff) << 13;
    const uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16;
    const bool is_special = magnitude >= 0x0f800000;
    const float scaled = __uint_as_float(magnitude) * 0x1p112f;
    const uint32_t bits = is_special ? magnitude | 0x7f800000 : __float_as_uint(scaled);
    return __uint_as_float(bits | sign);
}

/* Adding a number whose last bit has the weight of the result's last bit makes the sum round there. */
inline __half __float2half_rn(float x)
{
    const uint32_t sign = __float_as_uint(x) & 0x80000000, bits = __float_as_uint(x) ^ sign;
    uint32_t rounded;
    if (bits > 0x7f800000) {
        rounded = 0x7fff;
    } else if (bits >= 0x477ff000) {
        rounded = 0x7c00;
    } else if (bits < 0x38800000) {
        rounded = __float_as_uint(__uint_as_float(bits) + 0.5f) - 0x3f000000;
    } else {
        rounded = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
    }
    return __ushort_as_half((unsigned short)(rounded | sign >> 16));
}

inline __half __float2half(float x)
{
    return __float2half_rn(x);
}

inline __half::__half(float x) : bits(__float2half_rn(x).bits)
{
}

inline __half::operator float() const
{
    return __half2float(*this);
}

inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}

inline float2 __half22float2(__half2 h)
{
    return {__half2float(h.x), __half2float(h.y)};
}
