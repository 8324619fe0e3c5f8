#include "data/characters.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/utf8.h"

enum { CODE_POINTS = 0x110000, FIRST_HALF = 0xd800, AFTER_HALVES = 0xe000 };

bool zero_character_is_valid(int64_t c)
{
    return c >= 0 && c < CODE_POINTS && (c < FIRST_HALF || c >= AFTER_HALVES);
}

size_t zero_character_read(const unsigned char *text, size_t len, uint32_t *character)
{
    return zero_utf8_read(text, len, character);
}

size_t zero_character_write(uint32_t c, unsigned char text[4])
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) text[i] = (unsigned char)(0x80 | (c & 0x3f));
    text[0] = (unsigned char)(n == 1 ? c : (0xf00u >> n & 0xf0u) | c);
    return n;
}

/* Marks each character that occurs; returns how many there are. */
static zero_status mark(const unsigned char *text, size_t len, bool *occurs, int32_t *n)
{
    *n = 0;
    for (size_t at = 0, bytes; at < len; at += bytes) {
        uint32_t c = 0;
        bytes = zero_character_read(text + at, len - at, &c);
        if (bytes == 0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "--tokenizer char: the text is not UTF-8 at byte %zu "
                             "(0x%02x); --tokenizer byte takes any bytes",
                             at, text[at]);
        if (c == 0)
            return zero_fail(
                ZERO_ERR_FORMAT,
                "--tokenizer char: the text has a NUL at byte %zu, which the tokenizer's "
                "file cannot hold; --tokenizer byte takes any bytes",
                at);
        *n += !occurs[c];
        occurs[c] = true;
    }
    return ZERO_OK;
}

static zero_status list(const bool *occurs, int32_t n, int32_t most, uint32_t **characters)
{
    if (n > most)
        return zero_fail(ZERO_ERR_FORMAT,
                         "--tokenizer char: the text has %" PRId32
                         " different characters, more than %" PRId32
                         "; use --tokenizer byte or bpe:N",
                         n, most);
    uint32_t *list;
    ZERO_TRY(zero_new(&list, n, "characters"));
    int32_t at = 0;
    for (uint32_t c = 0; c < CODE_POINTS; c++)
        if (occurs[c]) list[at++] = c;
    *characters = list;
    return ZERO_OK;
}

zero_status zero_characters_learn(const unsigned char *text, size_t len, int32_t most,
                                  uint32_t **characters, int32_t *n)
{
    bool *occurs;
    ZERO_TRY(zero_new(&occurs, CODE_POINTS, "possible characters"));
    zero_status st = mark(text, len, occurs, n);
    if (st == ZERO_OK) st = list(occurs, *n, most, characters);
    free(occurs);
    return st;
}

int32_t zero_characters_find(const uint32_t *characters, int32_t n, uint32_t character)
{
    int32_t low = 0, high = n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (characters[middle] < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && characters[low] == character ? low : -1;
}
