/* ascii.h - classes of bytes that decide where pieces of text end. */
#pragma once

typedef enum {
    ZERO_ASCII_LETTER,
    ZERO_ASCII_DIGIT,
    ZERO_ASCII_SPACE, /* blank, tab to carriage return */
    ZERO_ASCII_OTHER,
    ZERO_ASCII_NOT /* a part of a longer character of UTF-8, or of none */
} zero_ascii_class;

static inline zero_ascii_class zero_ascii_class_of(unsigned char c)
{
    const unsigned char small = c | 0x20;
    if (small >= 'a' && small <= 'z') return ZERO_ASCII_LETTER;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return ZERO_ASCII_SPACE;
    if (c >= '0' && c <= '9') return ZERO_ASCII_DIGIT;
    return c < 128 ? ZERO_ASCII_OTHER : ZERO_ASCII_NOT;
}
