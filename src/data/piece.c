#include "data/piece.h"

#include "data/ascii.h"

static zero_ascii_class class_of(unsigned char c)
{
    return c < 128 ? zero_ascii_class_of(c) : ZERO_ASCII_LETTER;
}

size_t zero_piece_end(const unsigned char *text, size_t len, size_t at)
{
    size_t first = at, end = len - at < ZERO_PIECE_MAX ? len : at + ZERO_PIECE_MAX;
    if (text[at] == ' ' && at + 1 < end && class_of(text[at + 1]) != ZERO_ASCII_SPACE)
        first = at + 1;
    zero_ascii_class class = class_of(text[first]);
    size_t stop = first + 1;
    while (stop < end && class_of(text[stop]) == class) stop++;
    if (class == ZERO_ASCII_SPACE && stop - at > 1 && text[stop - 1] == ' ' && stop < len &&
        class_of(text[stop]) != ZERO_ASCII_SPACE)
        stop--;
    return stop;
}
