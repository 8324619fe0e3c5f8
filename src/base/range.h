/* range.h - arithmetic on ranges [begin, end). */
#pragma once

#include "base/half.h"
#include "base/number.h"
#include "zero/range.h"

static inline int64_t zero_range_len(zero_range range)
{
    return range.end - range.begin;
}

/* The bytes of so many elements of the type. */
static inline size_t zero_range_bytes(zero_range range, zero_type type)
{
    return (size_t)zero_range_len(range) * zero_type_size(type);
}

static inline bool zero_range_is_empty(zero_range range)
{
    return range.begin >= range.end;
}

/* The elements in both; an empty range if there are none. */
static inline zero_range zero_range_overlap(zero_range a, zero_range b)
{
    return (zero_range){zero_max(a.begin, b.begin), zero_min(a.end, b.end)};
}
