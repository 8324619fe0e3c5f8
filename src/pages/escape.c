#include "pages/escape.h"

#include <strings.h>

#include "base/legible.h"
#include "base/utf8.h"

static const char *reference(uint32_t character)
{
    switch (character) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

/* Writes the character at text and returns its bytes there. */
static size_t write_one(const char *text, size_t left, FILE *out)
{
    uint32_t character;
    size_t n = zero_utf8_read((const unsigned char *)text, left, &character);
    if (n == 0) {
        fprintf(out, "\\x{%02X}", (unsigned)(unsigned char)text[0]);
        return 1;
    }
    /* XML has no U+FFFE and U+FFFF; HTML calls the last two of every plane
     * noncharacters, too. */
    if (zero_legible_hides(character) || (character & 0xfffe) == 0xfffe ||
        (character >= 0xfdd0 && character <= 0xfdef))
        fprintf(out, "\\u{%X}", (unsigned)character);
    else if (reference(character))
        fputs(reference(character), out);
    else if (left >= 4 && strncasecmp(text, "http", 4) == 0)
        fprintf(out, "&#%u;", (unsigned)character);
    else
        fwrite(text, 1, n, out);
    return n;
}

void zero_escape(const char *text, FILE *out)
{
    for (size_t left = strlen(text); left > 0;) {
        size_t n = write_one(text, left, out);
        text += n;
        left -= n;
    }
}
