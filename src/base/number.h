/* number.h - small arithmetic on counts and sizes. */
#pragma once

#include "base/grow.h"

/* Elements of an array. */
#define ZERO_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static inline int64_t zero_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t zero_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t zero_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t zero_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The value, or if it is 0 the standard one. */
static inline int64_t zero_or_else(int64_t value, int64_t standard)
{
    return value == 0 ? standard : value;
}

/* The least multiple of `to` that is not below n; n >= 0, to > 0. */
static inline int64_t zero_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static inline size_t zero_round_up_size(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* n / by, rounded up; n >= 0, by > 0. */
static inline int64_t zero_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static inline bool zero_is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}
