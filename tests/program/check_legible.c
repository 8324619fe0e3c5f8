/* check_legible.c - fails if its input could act on a terminal: check_legible NAME <text
 *
 * Lines may end, and columns may be reached by tabs; any other character that base/legible.h shows by its
 * number, and each byte that is not UTF-8, is one that a print has let through. */
#include <stdio.h>
#include <string.h>

#include "base/legible.h"
#include "base/utf8.h"

static unsigned char line[1 << 20];

int main(int argc, char **argv)
{
    for (int number = 1; fgets((char *)line, sizeof line, stdin); number++) {
        size_t len = strlen((char *)line);
        for (size_t at = 0, n; at < len; at += n) {
            uint32_t c = 0;
            n = zero_utf8_read(line + at, len - at, &c);
            if (n > 0 && (!zero_legible_hides(c) || c == '\n' || c == '\t')) continue;
            fprintf(stderr,
                    "%s, line %d, byte %zu: %s %02X: ", argc > 1 ? argv[1] : "input",
                    number, at, n > 0 ? "hidden character" : "invalid byte",
                    n > 0 ? (unsigned)c : line[at]);
            zero_legible_print((char *)line, stderr);
            fputc('\n', stderr);
            return 1;
        }
    }
    return 0;
}
