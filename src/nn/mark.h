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

static inline int zero_mark_is(const float *x)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    return (bits & UINT32_C(0x7fffffff)) == ZERO_MARK;
}

/* The first element of x[n] that bears the mark, with any sign; -1: none does. Blocks without one
 * are passed without a branch per element. */
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
