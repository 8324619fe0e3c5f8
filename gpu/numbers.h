/* numbers.h - numbers of 16 bits on a device: base/half.h defines these conversions, and the bits are
 * the CPU's, NaN's payloads excepted. GPUs convert a number in one instruction; by integers it would
 * take about ten, and a kernel that moves 16-bit rows at the memory's rate has time for twenty. */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gpu/launch.h"

#include "base/number.h"
#include "gpu/kernels.h"

/* Two files may use one name for different things. */
namespace
{

static inline __device__ uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline __device__ float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* base/half.h makes zeros of numbers that are denormal; bf16 alone would keep them. */
static inline __device__ uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
    const float normal = float_of(magnitude < 0x00800000u ? bits & 0x80000000u : bits);
    const __nv_bfloat16_raw rounded = __nv_bfloat16_raw(__float2bfloat16_rn(normal));
    return rounded.x; /* unlike __bfloat16_as_ushort() CUDA 11.8 has it below sm_80, too */
}

static inline __device__ float from_fp16(uint16_t x)
{
    return __half2float(__ushort_as_half(x));
}

static inline __device__ uint16_t to_fp16(float x)
{
    return __half_as_ushort(__float2half_rn(x));
}

/* The numbers in an array of a zero_type. */
template <zero_type type> struct stored {
    typedef uint16_t number;
};
template <> struct stored<ZERO_FP32> {
    typedef float number;
};

template <zero_type type> __device__ float widened(typename stored<type>::number x)
{
    if constexpr (type == ZERO_BF16)
        return float_of((uint32_t)x << 16);
    else if constexpr (type == ZERO_FP16)
        return from_fp16(x);
    else
        return x;
}

template <zero_type type> __device__ typename stored<type>::number narrowed(float x)
{
    if constexpr (type == ZERO_BF16)
        return to_bf16(x);
    else if constexpr (type == ZERO_FP16)
        return to_fp16(x);
    else
        return x;
}

/* x as it is stored in an array of this type. */
template <zero_type type> __device__ float rounded(float x)
{
    return widened<type>(narrowed<type>(x));
}

/* A zero_type as a value: f(of_type<type>()). */
template <zero_type type> struct of_type {
    static constexpr zero_type value = type;
};

/* Calls a function that is generic in a zero_type. */
template <class function> void for_type(zero_type type, const function &f)
{
    if (type == ZERO_BF16)
        f(of_type<ZERO_BF16>());
    else if (type == ZERO_FP16)
        f(of_type<ZERO_FP16>());
    else
        f(of_type<ZERO_FP32>());
}

/* The same for parameters of `type` and rows, which are fp32 or of the parameters' type. */
template <class function> void for_types(zero_type type, zero_type rows, const function &f)
{
    assert((rows == ZERO_FP32 || rows == type) &&
           "rows are fp32 or of the parameters' type");
    for_type(type, [&](auto of) {
        if (rows == ZERO_FP32)
            f(of, of_type<ZERO_FP32>());
        else
            f(of, of);
    });
}

} // namespace
