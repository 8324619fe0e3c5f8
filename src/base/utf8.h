/* utf8.h - UTF-8, read strictly. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at text, of which `room` > 0 bytes exist. 0 if it is invalid: longer than
 * necessary, one half of a surrogate pair, beyond U+10FFFF, or cut off. */
static inline size_t zero_utf8_length(const unsigned char *text, size_t room)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    size_t len = first < 0x80             ? 1
                 : (first & 0xe0) == 0xc0 ? 2
                 : (first & 0xf0) == 0xe0 ? 3
                 : (first & 0xf8) == 0xf0 ? 4
                                          : 0;
    if (len <= 1) return len;
    if (len > room) return 0;
    uint32_t point = first & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < least[len] || surrogate || point > 0x10ffff ? 0 : len;
}
