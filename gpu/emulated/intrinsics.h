/* intrinsics.h - CUDA's qualifiers, and its functions of single numbers. */
#pragma once

#include <math.h>

#include <cstdint>
#include <cstring>

#include "gpu/emulated/vector_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__    static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

/* ---- bits ---- */

namespace emulated
{
template <typename To, typename From> To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
} // namespace emulated

inline unsigned __float_as_uint(float x)
{
    return emulated::same_bits<unsigned>(x);
}

inline int __float_as_int(float x)
{
    return emulated::same_bits<int>(x);
}

inline float __uint_as_float(unsigned x)
{
    return emulated::same_bits<float>(x);
}

inline float __int_as_float(int x)
{
    return emulated::same_bits<float>(x);
}

inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

/* ---- arithmetic: these are never contracted ---- */

inline float __fadd_rn(float a, float b)
{
    return a + b;
}

inline float __fsub_rn(float a, float b)
{
    return a - b;
}

inline float __fmul_rn(float a, float b)
{
    return a * b;
}

inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}

inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

inline double __dadd_rn(double a, double b)
{
    return a + b;
}

inline double __dmul_rn(double a, double b)
{
    return a * b;
}

inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

inline float fdividef(float a, float b)
{
    return a / b;
}

/* ---- conversions ---- */

inline float __int2float_rn(int x)
{
    return (float)x;
}

inline float __uint2float_rn(unsigned x)
{
    return (float)x;
}

inline int __float2int_rn(float x)
{
    return (int)rintf(x);
}

inline float __double2float_rn(double x)
{
    return (float)x;
}

/* ---- the smaller and the larger of two; NaN as fminf() and fmaxf() have it ---- */

#define ZERO_ORDERED(type) \
    inline type min(type a, type b) \
    { \
        return b < a ? b : a; \
    } \
    inline type max(type a, type b) \
    { \
        return a < b ? b : a; \
    }

ZERO_ORDERED(int)
ZERO_ORDERED(unsigned)
ZERO_ORDERED(long)
ZERO_ORDERED(unsigned long)
ZERO_ORDERED(long long)
ZERO_ORDERED(unsigned long long)
#undef ZERO_ORDERED

inline float min(float a, float b)
{
    return fminf(a, b);
}

inline float max(float a, float b)
{
    return fmaxf(a, b);
}

inline double min(double a, double b)
{
    return fmin(a, b);
}

inline double max(double a, double b)
{
    return fmax(a, b);
}

/* ---- memory ---- */

template <typename T> T __ldg(const T *x)
{
    return *x;
}

/* ---- vectors ---- */

inline int2 make_int2(int x, int y)
{
    return {x, y};
}

inline int4 make_int4(int x, int y, int z, int w)
{
    return {x, y, z, w};
}

inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

inline float2 make_float2(float x, float y)
{
    return {x, y};
}

inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

inline double2 make_double2(double x, double y)
{
    return {x, y};
}

/* ---- memory ---- */

/* Threads take turns on one of the host's: nothing comes between. */
inline unsigned long long atomicMax(unsigned long long *x, unsigned long long value)
{
    unsigned long long old = *x;
    if (value > old) *x = value;
    return old;
}
