/* mark.h - a NaN that stands for "nothing was written here", in fp32 and in 16 bits.
 *
 * Arithmetic with it keeps its bits, whatever the other operand is, and no arithmetic on
 * other numbers makes it. */
#pragma once

#include <string.h>

#include "zero/type.h"

#define ZERO_MARK UINT32_C(0x7fc5a71e)
/* Quiet in bf16 and in fp16, and kept by widening and rounding. */
#define ZERO_MARK_HALF UINT16_C(0x7fc5)

static inline void zero_mark_fill(float *x, int64_t n)
{
    const uint32_t mark = ZERO_MARK;
    for (int64_t i = 0; x && i < n; i++) memcpy(&x[i], &mark, sizeof mark);
}

static inline int zero_mark_is(const float *x)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    return (bits & UINT32_C(0x7fffffff)) == ZERO_MARK;
}

/* The first element of x[n] that bears the mark, with any sign; -1: none does. Blocks
 * without one are passed without a branch per element. */
static inline int64_t zero_mark_find(const float *x, int64_t n)
{
    enum { BLOCK = 256 };
    for (int64_t at = 0; x && at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        int found = 0;
        for (int64_t i = at; i < end; i++) found |= zero_mark_is(&x[i]);
        for (int64_t i = at; found && i < end; i++)
            if (zero_mark_is(&x[i])) return i;
    }
    return -1;
}

static inline int64_t zero_mark_find_half(const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++)
        if ((x[i] & UINT16_C(0x7fff)) == ZERO_MARK_HALF) return i;
    return -1;
}

/* The same for x[n] of a type. */
static inline void zero_mark_fill_type(zero_type type, void *x, int64_t n)
{
    const uint16_t mark = ZERO_MARK_HALF;
    if (type == ZERO_FP32)
        zero_mark_fill(x, n);
    else
        for (int64_t i = 0; x && i < n; i++)
            memcpy((char *)x + (size_t)i * sizeof mark, &mark, sizeof mark);
}

static inline int64_t zero_mark_find_type(zero_type type, const void *x, int64_t n)
{
    return type == ZERO_FP32 ? zero_mark_find(x, n) : zero_mark_find_half(x, n);
}
