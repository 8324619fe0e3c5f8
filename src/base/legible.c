#include "base/legible.h"

#include "base/number.h"
#include "base/utf8.h"

#define MOST_SHOWN 16 /* bytes for one character, with a zero */

static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

bool zero_legible_hides(uint32_t character)
{
    for (int i = 0; i < ZERO_COUNT(hidden); i++)
        if (character >= hidden[i].first && character <= hidden[i].last) return true;
    return false;
}

/* Shows the character, or the invalid byte, at text. Returns its bytes there. */
static size_t show_one(const unsigned char *text, size_t len, char shown[MOST_SHOWN])
{
    uint32_t character;
    size_t n = zero_utf8_read(text, len, &character);
    if (n == 0) {
        snprintf(shown, MOST_SHOWN, "\\x{%02X}", text[0]);
        return 1;
    }
    if (zero_legible_hides(character))
        snprintf(shown, MOST_SHOWN, "\\u{%X}", (unsigned)character);
    else
        snprintf(shown, MOST_SHOWN, "%.*s", (int)n, (const char *)text);
    return n;
}

size_t zero_legible(const char *text, size_t len, char *to, size_t size)
{
    size_t at = 0, used = 0;
    while (at < len) {
        char shown[MOST_SHOWN];
        size_t n = show_one((const unsigned char *)text + at, len - at, shown);
        if (used + strlen(shown) >= size) break;
        strcpy(to + used, shown);
        used += strlen(shown);
        at += n;
    }
    to[used] = '\0';
    return at;
}

void zero_legible_print(const char *text, FILE *out)
{
    char shown[ZERO_SHOWN_BYTES];
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = zero_legible(text, left, shown, sizeof shown);
        fputs(shown, out);
    }
}

/* Between strings there are ends of lines; in them no control character of C0 is left. */
void zero_legible_print_json(const char *json, FILE *out)
{
    uint32_t c;
    for (size_t left = strlen(json), n; left > 0; json += n, left -= n) {
        n = zero_utf8_read((const unsigned char *)json, left, &c);
        bool is_plain = n == 0 || c == '\n' || !zero_legible_hides(c);
        if (n == 0) n = 1;
        if (is_plain)
            fwrite(json, 1, n, out);
        else if (c < 0x10000)
            fprintf(out, "\\u%04X", (unsigned)c);
        else /* in UTF-16 */
            fprintf(out, "\\u%04X\\u%04X", (unsigned)(0xd7c0 + (c >> 10)),
                    (unsigned)(0xdc00 + (c & 0x3ff)));
    }
}

const char *zero_shown(const char *text, char shown[ZERO_SHOWN_BYTES])
{
    zero_legible(text, strlen(text), shown, ZERO_SHOWN_BYTES);
    return shown;
}
