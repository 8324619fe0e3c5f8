#include "data/piece.h"

typedef enum { LETTER, DIGIT, OTHER, SPACE } byte_class;

static byte_class class_of(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128) return LETTER;
    if (c >= '0' && c <= '9') return DIGIT;
    if (c == ' ' || (c >= '\t' && c <= '\r')) return SPACE;
    return OTHER;
}

size_t zero_piece_end(const unsigned char *text, size_t len, size_t at)
{
    size_t first = at, end = len - at < ZERO_PIECE_MAX ? len : at + ZERO_PIECE_MAX;
    if (text[at] == ' ' && at + 1 < end && class_of(text[at + 1]) != SPACE) first = at + 1;
    byte_class class = class_of(text[first]);
    size_t stop = first + 1;
    while (stop < end && class_of(text[stop]) == class) stop++;
    if (class == SPACE && stop - at > 1 && text[stop - 1] == ' ' && stop < len &&
        class_of(text[stop]) != SPACE)
        stop--;
    return stop;
}
