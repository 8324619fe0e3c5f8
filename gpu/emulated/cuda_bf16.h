/* cuda_bf16.h - bf16 numbers, the upper half of an fp32. They are stored and converted, as in
 * cuda_fp16.h. */
#pragma once

#include <cstdint>

#include "gpu/emulated/intrinsics.h"

struct __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    explicit __nv_bfloat16(float x);
    explicit operator float() const;
};
typedef __nv_bfloat16 nv_bfloat16;

struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 b;
    b.bits = bits;
    return b;
}

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b)
{
    return b.bits;
}

struct __nv_bfloat16_raw {
    unsigned short x;

    explicit __nv_bfloat16_raw(__nv_bfloat16 b) : x(b.bits)
    {
    }
};

inline float __bfloat162float(__nv_bfloat16 b)
{
    return __uint_as_float((uint32_t)b.bits << 16);
}

/* To nearest, ties to even. As on a GPU, denormals are kept and every NaN becomes the same. */
inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const uint32_t bits = __float_as_uint(x);
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return __ushort_as_bfloat16((unsigned short)(is_nan ? 0x7fff : rounded));
}

inline __nv_bfloat16 __float2bfloat16(float x)
{
    return __float2bfloat16_rn(x);
}

inline __nv_bfloat16::__nv_bfloat16(float x) : bits(__float2bfloat16_rn(x).bits)
{
}

inline __nv_bfloat16::operator float() const
{
    return __bfloat162float(*this);
}

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

inline float2 __bfloat1622float2(__nv_bfloat162 b)
{
    return {__bfloat162float(b.x), __bfloat162float(b.y)};
}
