/* range.h - a part of a flat space. */
#pragma once

#include <stdint.h>

typedef struct {
    int64_t begin, end; /* [begin, end) elements */
} zero_range;
