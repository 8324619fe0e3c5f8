/* text.h - how texts end. */
#pragma once

#include "base/fail.h"

static inline bool zero_ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && zero_same_text(text + n - k, end);
}
