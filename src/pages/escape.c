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

void zero_escape(const char *text, FILE *out)
{
    uint32_t character;
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = zero_utf8_read((const unsigned char *)text, left, &character);
        /* XML has no U+FFFE and U+FFFF; HTML calls the last two of every plane
         * noncharacters, too. */
        if (n == 0)
            fprintf(out, "\\x{%02X}", (unsigned)(unsigned char)text[n++]);
        else if (zero_legible_hides(character) || (character & 0xfffe) == 0xfffe ||
                 (character >= 0xfdd0 && character <= 0xfdef))
            fprintf(out, "\\u{%X}", (unsigned)character);
        else if (reference(character))
            fputs(reference(character), out);
        else if (left >= 4 && strncasecmp(text, "http", 4) == 0)
            fprintf(out, "&#%u;", (unsigned)character);
        else
            fwrite(text, 1, n, out);
    }
}
