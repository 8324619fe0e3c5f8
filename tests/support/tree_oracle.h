/* tree_oracle.h - inputs of collectives, and the sums that they must give.
 *
 * The tree is written down once more, one element at a time, with none of the code under test.
 * Magnitudes of leaves vary so widely that another order of summation gives other bits; each
 * leaf is exact in its type. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

/* From the first of these trials on, some leaves are NaN or infinite; from the second on, all are
 * small integers, whose sums are exact in any order. */
#define ORACLE_SPECIAL ((uint64_t)1 << 32)
#define ORACLE_SMALL   ((uint64_t)1 << 33)

static inline uint64_t oracle_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t oracle_bits(uint64_t trial, int rank, int64_t i)
{
    return oracle_mix(oracle_mix(trial << 20 ^ (uint64_t)rank) ^ (uint64_t)i);
}

static inline float oracle_power(int exponent) /* 2^exponent; ldexpf is slow */
{
    uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Element i of the array of rank `rank`. */
static inline float oracle_leaf(zero_type type, uint64_t trial, int rank, int64_t i)
{
    static const int digits[] = {[ZERO_FP32] = 24, [ZERO_BF16] = 8, [ZERO_FP16] = 11};
    static const int reach[] = {[ZERO_FP32] = 30, [ZERO_BF16] = 20, [ZERO_FP16] = 5};
    uint64_t bits = oracle_bits(trial, rank, i);
    if (trial >= ORACLE_SMALL) return (float)(bits % 9) - 4.0f;
    if (trial >= ORACLE_SPECIAL && bits % 31 == 0) return bits % 2 ? NAN : INFINITY;
    if (trial >= ORACLE_SPECIAL && bits % 37 == 0) return -INFINITY;
    int64_t half = (int64_t)1 << (digits[type] - 1);
    int64_t mantissa = (int64_t)(bits >> 32) % (2 * half) - half;
    int exponent = (int)(bits >> 8 & 0xff) % (2 * reach[type]) - reach[type];
    return (float)mantissa * oracle_power(exponent - digits[type] + 1);
}

/* The sum over ranks first .. first+n-1, in fp32. */
static inline float oracle_sum(zero_type type, uint64_t trial, int first, int n, int64_t i)
{
    if (n == 1) return oracle_leaf(type, trial, first, i);
    int left = 1;
    while (2 * left < n) left *= 2;
    return oracle_sum(type, trial, first, left, i) +
           oracle_sum(type, trial, first + left, n - left, i);
}

static inline void oracle_store(zero_type type, void *array, int64_t i, float x)
{
    if (type == ZERO_FP32)
        ((float *)array)[i] = x;
    else
        ((uint16_t *)array)[i] = type == ZERO_BF16 ? zero_to_bf16(x) : zero_to_fp16(x);
}

static inline float oracle_load(zero_type type, const void *array, int64_t i)
{
    if (type == ZERO_FP32) return ((const float *)array)[i];
    uint16_t x = ((const uint16_t *)array)[i];
    return type == ZERO_BF16 ? zero_from_bf16(x) : zero_from_fp16(x);
}

/* True if element i is x, rounded to the type once. All NaNs are equal. */
static inline bool oracle_same(zero_type type, const void *array, int64_t i, float x)
{
    float expected, found = oracle_load(type, array, i);
    char rounded[sizeof(float)] __attribute__((aligned(8)));
    oracle_store(type, rounded, 0, x);
    expected = oracle_load(type, rounded, 0);
    return memcmp(&expected, &found, sizeof found) == 0 ||
           (isnan(expected) && isnan(found));
}
