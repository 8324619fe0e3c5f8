/* little_endian.h - numbers in files: the low byte comes first. */
#pragma once

#include <stdint.h>

/* The number in `width` bytes, at most 8. */
static inline uint64_t zero_little_endian(const unsigned char *bytes, int width)
{
    uint64_t value = 0;
    for (int i = width - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}
