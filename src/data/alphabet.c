#include "data/alphabet.h"

#include <stdint.h>

static bool stands_for_itself(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
}

static unsigned point_of(unsigned byte)
{
    unsigned before = byte; /* bytes before this one that do not stand for themselves */
    if (stands_for_itself(byte)) return byte;
    if (byte > 0x20) before = 33;               /* 0x7f */
    if (byte > 0x7f) before = 34 + byte - 0x80; /* 0x80 to 0xa0 */
    if (byte == 0xad) before = 67;
    return 0x100 + before;
}

size_t zero_alphabet_letter(unsigned char byte, char letter[ZERO_LETTER])
{
    unsigned point = point_of(byte);
    size_t len = 0;
    if (point >= 0x80) letter[len++] = (char)(0xc0 | point >> 6);
    letter[len++] = (char)(point < 0x80 ? point : 0x80 | (point & 0x3f));
    letter[len] = '\0';
    return len;
}

/* The byte that a character stands for; -1 if it is not a letter. */
static int byte_of(unsigned point)
{
    if (point < 0x100) return stands_for_itself(point) ? (int)point : -1;
    unsigned n = point - 0x100;
    if (n <= 0x20) return (int)n;
    if (n == 33) return 0x7f;
    if (n >= 34 && n <= 66) return (int)(0x80 + n - 34);
    return n == 67 ? 0xad : -1;
}

bool zero_alphabet_bytes(const char *text, unsigned char *out, size_t *len)
{
    *len = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        unsigned point = *at;
        if (point >= 0xe0) return false;
        if (point >= 0xc0) point = (point & 0x1f) << 6 | (*++at & 0x3f);
        int byte = byte_of(point);
        if (byte < 0) return false;
        out[(*len)++] = (unsigned char)byte;
    }
    return true;
}
