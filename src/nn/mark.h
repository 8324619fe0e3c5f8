/* mark.h - a NaN that stands for "nothing was written here".
 *
 * Arithmetic with it keeps its bits, whatever the other operand is, and no arithmetic on other
 * numbers makes it. */
#pragma once

#include <stdint.h>
#include <string.h>

#define ZERO_MARK UINT32_C(0x7fc5a71e)

static inline void zero_mark_fill(float *x, int64_t n)
{
    const uint32_t mark = ZERO_MARK;
    for (int64_t i = 0; x && i < n; i++) memcpy(&x[i], &mark, sizeof mark);
}

/* The first element of x[n] that bears the mark, with any sign; -1: none does. */
static inline int64_t zero_mark_find(const float *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if ((bits & UINT32_C(0x7fffffff)) == ZERO_MARK) return i;
    }
    return -1;
}
