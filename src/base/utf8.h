/* utf8.h - UTF-8, read strictly, and written. */
#pragma once

#include "base/fail.h"

/* Reads the character at text, of which `room` > 0 bytes exist, and returns its bytes. 0 if
 * it is invalid: longer than necessary, one half of a surrogate pair, beyond U+10FFFF, or
 * cut off. */
static inline size_t zero_utf8_read(const unsigned char *text, size_t room,
                                    uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    size_t len = first < 0x80             ? 1
                 : (first & 0xe0) == 0xc0 ? 2
                 : (first & 0xf0) == 0xe0 ? 3
                 : (first & 0xf8) == 0xf0 ? 4
                                          : 0;
    if (len == 0 || len > room) return 0;
    uint32_t point = len == 1 ? first : first & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < least[len] || surrogate || point > 0x10ffff) return 0;
    *character = point;
    return len;
}

/* The same without the character. */
static inline size_t zero_utf8_length(const unsigned char *text, size_t room)
{
    uint32_t character;
    return zero_utf8_read(text, room, &character);
}

/* Writes a character and returns its bytes, 1 to 4. */
static inline size_t zero_utf8_write(uint32_t c, unsigned char text[4])
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) text[i] = (unsigned char)(0x80 | (c & 0x3f));
    text[0] = (unsigned char)(n == 1 ? c : (0xf00u >> n & 0xf0u) | c);
    return n;
}
