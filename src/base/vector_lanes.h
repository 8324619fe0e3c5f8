/* vector_lanes.h - a register's worth of numbers at a time: widened, rounded, streamed.
 *
 * Included by files that are compiled once per instruction set (vector_kernels.c, and some
 * in math/): width and instructions follow from what the compiler may use. Without an
 * instruction plain integer arithmetic does the same, number for number as half.c. */
#pragma once

#include "base/fail.h"
#include "base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define WIDTH 16
#elif defined(__AVX2__)
#define WIDTH 8
#else
#define WIDTH 4
#endif

/* These fill a register: GCC splits wider ones through memory, 5 times slower. */
typedef float floats __attribute__((vector_size(4 * WIDTH), aligned(1), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef uint32_t bits32 __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef uint16_t bits16 __attribute__((vector_size(2 * WIDTH), aligned(2), may_alias));
typedef double doubles __attribute__((vector_size(4 * WIDTH), may_alias));

/* The instructions of a register: INTS and FLOATS fill one, HALF is half as large. */
#if defined(__AVX512F__)
#define INTS        __m512i
#define FLOATS      __m512
#define DOUBLES     __m512d
#define HALF        __m256i
#define WIDEN       _mm512_cvtepu16_epi32
#define NARROW      _mm512_cvtepi32_epi16
#define SQUARE_ROOT _mm512_sqrt_ps
#define ROOT        _mm512_sqrt_pd
#define LARGER      _mm512_max_epi32
#define PRODUCT     _mm512_mul_epu32
#define TO_DOUBLES  _mm512_cvtps_pd
#define LOWER(x)    _mm512_castps512_ps256(x)
#define UPPER(x)    _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1))
#define STREAM      _mm512_stream_ps
#define STREAM_16   _mm256_stream_si256
#define FROM_FP16   _mm512_cvtph_ps
#define TO_FP16     _mm512_cvtps_ph
#elif defined(__AVX2__)
#define INTS    __m256i
#define FLOATS  __m256
#define DOUBLES __m256d
#define HALF    __m128i
#define WIDEN   _mm256_cvtepu16_epi32
#define NARROW(x) \
    _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1))
#define SQUARE_ROOT _mm256_sqrt_ps
#define ROOT        _mm256_sqrt_pd
#define LARGER      _mm256_max_epi32
#define PRODUCT     _mm256_mul_epu32
#define TO_DOUBLES  _mm256_cvtps_pd
#define LOWER(x)    _mm256_castps256_ps128(x)
#define UPPER(x)    _mm256_extractf128_ps(x, 1)
#define STREAM      _mm256_stream_ps
#define STREAM_16   _mm_stream_si128
#if defined(__F16C__)
#define FROM_FP16 _mm256_cvtph_ps
#define TO_FP16   _mm256_cvtps_ph
#endif
#elif defined(__x86_64__)
#define INTS        __m128i
#define FLOATS      __m128
#define DOUBLES     __m128d
#define HALF        long long
#define WIDEN(x)    _mm_unpacklo_epi16(_mm_cvtsi64_si128(x), _mm_setzero_si128())
/* SSE2 packs signed numbers only; the halves fit as such. */
#define SIGNED(x)   _mm_srai_epi32(_mm_slli_epi32(x, 16), 16)
#define NARROW(x)   _mm_cvtsi128_si64(_mm_packs_epi32(SIGNED(x), SIGNED(x)))
#define SQUARE_ROOT _mm_sqrt_ps
#define ROOT        _mm_sqrt_pd
#define PRODUCT     _mm_mul_epu32
#define TO_DOUBLES  _mm_cvtps_pd
#define LOWER(x)    x
#define UPPER(x)    _mm_movehl_ps(x, x)
#define STREAM      _mm_stream_ps
#define STREAM_16   _mm_stream_si64
#endif

/* widen(x): zeros above. narrow(x): the lower halves; the upper ones are zero. low, high:
 * half of the numbers as doubles. stream, stream16: stores past the caches, to addresses
 * aligned to the size stored. Wide stores are faster: with 64 bytes a sum streams at 1.15
 * times the speed of 16. */
#if defined(INTS)
INLINE bits32 widen(bits16 x)
{
    return (bits32)WIDEN((HALF)x);
}

INLINE bits16 narrow(bits32 x)
{
    return (bits16)NARROW((INTS)x);
}

INLINE floats square_root(floats x)
{
    return (floats)SQUARE_ROOT((FLOATS)x);
}

INLINE doubles low(floats x)
{
    return (doubles)TO_DOUBLES(LOWER((FLOATS)x));
}

INLINE doubles high(floats x)
{
    return (doubles)TO_DOUBLES(UPPER((FLOATS)x));
}

INLINE void stream(float *to, floats x)
{
    STREAM(to, (FLOATS)x);
}

INLINE void stream16(uint16_t *to, bits16 x)
{
    STREAM_16((void *)to, (HALF)x);
}
#else
INLINE bits32 widen(bits16 x)
{
    return __builtin_convertvector(x, bits32);
}

INLINE bits16 narrow(bits32 x)
{
    return __builtin_convertvector(x, bits16);
}

INLINE floats square_root(floats x)
{
    for (int l = 0; l < WIDTH; l++) x[l] = sqrtf(x[l]);
    return x;
}

INLINE doubles low(floats x)
{
    return (doubles){(double)x[0], (double)x[1]};
}

INLINE doubles high(floats x)
{
    return (doubles){(double)x[2], (double)x[3]};
}

INLINE void stream(float *to, floats x)
{
    memcpy(to, &x, sizeof x);
}

INLINE void stream16(uint16_t *to, bits16 x)
{
    memcpy(to, &x, sizeof x);
}
#endif

INLINE bits32 choose(ints condition, bits32 yes, bits32 no)
{
    return (yes & (bits32)condition) | (no & ~(bits32)condition);
}

/* The larger numbers of each pair. */
INLINE ints larger(ints a, ints b)
{
#if defined(LARGER)
    return (ints)LARGER((INTS)a, (INTS)b);
#else
    return (ints)choose(a > b, (bits32)a, (bits32)b);
#endif
}

INLINE floats from_bf16(bits16 x)
{
    return (floats)(widen(x) << 16);
}

#if defined(__AVX512BF16__)
INLINE bits16 to_bf16(floats x)
{
    return (bits16)_mm512_cvtneps_pbh((__m512)x);
}
#else
INLINE bits16 to_bf16(floats x)
{
    bits32 bits = (bits32)x, upper = bits >> 16;
    ints magnitude = (ints)(bits & 0x7fffffff);
    bits32 rounded = (bits + 0x7fff + (upper & 1)) >> 16;
    bits32 half = choose(magnitude < 0x00800000, upper & 0x8000, rounded);
    return narrow(choose(magnitude > 0x7f800000, upper | 0x40, half));
}
#endif

#if defined(FROM_FP16)
INLINE floats from_fp16(bits16 x)
{
    return (floats)FROM_FP16((HALF)x);
}

INLINE bits16 to_fp16(floats x)
{
    return (bits16)TO_FP16((FLOATS)x, _MM_FROUND_TO_NEAREST_INT);
}
#else
INLINE floats from_fp16(bits16 x)
{
    bits32 half = widen(x), sign = (half & 0x8000) << 16, magnitude = (half & 0x7fff) << 13;
    ints order = (ints)magnitude;
    bits32 normal = magnitude + (112u << 23), special = magnitude + (224u << 23);
    special |= (bits32)(order > (31 << 23)) & 0x400000; /* a quiet NaN */
    /* 2^-14 with the number as its fraction, less 2^-14 */
    bits32 tiny = (bits32)((floats)(magnitude + (113u << 23)) - 0x1p-14f);
    bits32 value = choose(order < (1 << 23), tiny, normal);
    return (floats)(sign | choose(order >= (31 << 23), special, value));
}

INLINE bits16 to_fp16(floats x)
{
    bits32 bits = (bits32)x, sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    ints order = (ints)magnitude;
    bits32 normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    bits32 tiny = (bits32)((floats)magnitude + 0.5f) - 0x3f000000; /* see half.c */
    bits32 half = choose(order < 0x38800000, tiny, normal);
    half = choose(order >= 0x477ff000, (bits32){0} + 0x7c00, half);
    half = choose(order > 0x7f800000, (magnitude >> 13 & 0x3ff) | 0x7e00, half);
    return narrow(sign | half);
}
#endif

/* Callers inline these with constant types: every mixture of types becomes a separate
 * loop. */
INLINE floats load(zero_type type, const void *in, int64_t i)
{
    if (type == ZERO_FP32) return *(const floats *)((const float *)in + i);
    bits16 half = *(const bits16 *)((const uint16_t *)in + i);
    return type == ZERO_BF16 ? from_bf16(half) : from_fp16(half);
}

INLINE void store(zero_type type, floats x, void *out, int64_t i, bool streaming)
{
    if (type == ZERO_FP32) {
        float *to = (float *)out + i;
        if (streaming)
            stream(to, x);
        else
            *(floats *)to = x;
    } else {
        uint16_t *to = (uint16_t *)out + i;
        bits16 half = type == ZERO_BF16 ? to_bf16(x) : to_fp16(x);
        if (streaming)
            stream16(to, half);
        else
            *(bits16 *)to = half;
    }
}

/* True if any number has a bit. */
INLINE bool is_any(bits16 x)
{
#if defined(__AVX512F__)
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
#elif defined(__AVX2__)
    return !_mm_testz_si128((__m128i)x, (__m128i)x);
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits != 0;
#endif
}

INLINE floats rounded(zero_type type, floats x)
{
    if (type == ZERO_FP32) return x;
    return type == ZERO_BF16 ? from_bf16(to_bf16(x)) : from_fp16(to_fp16(x));
}
