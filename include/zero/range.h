/* range.h - a part of a flat space. */
#pragma once

#include <stdint.h>

#include "zero/api.h"

ZERO_API_BEGIN

typedef struct {
    int64_t begin, end; /* [begin, end) elements */
} zero_range;

ZERO_API_END
