#include "cli/hjson.h"

#include <stdbool.h>
#include <string.h>

static bool begins(const unsigned char *text, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* The length of the string at the start of the text, with its quotes. */
static size_t string_length(const unsigned char *text, size_t len)
{
    size_t at = 1;
    while (at < len && text[at] != '"' && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
    return at < len ? at + 1 : len;
}

/* The length of the comment at the start of the text; 0: there is none. */
static size_t comment_length(const unsigned char *text, size_t len)
{
    bool is_block = begins(text, len, "/*");
    size_t at = 2;
    if (!is_block && !begins(text, len, "//") && !begins(text, len, "#")) return 0;
    if (is_block)
        while (at < len && !begins(text + at, len - at, "*/")) at++;
    else
        for (at = 1; at < len && text[at] != '\n';) at++;
    if (is_block && at < len) at += 2;
    return at < len ? at : len;
}

static void blank(unsigned char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] != '\n') text[i] = ' ';
}

void zero_hjson_blank(unsigned char *text, size_t len)
{
    unsigned char *comma = NULL; /* the last character that means something, if it is one */
    for (size_t at = 0, n; at < len; at += n) {
        n = comment_length(text + at, len - at);
        blank(text + at, n);
        if (n > 0) continue;
        n = text[at] == '"' ? string_length(text + at, len - at) : 1;
        if (comma && (text[at] == '}' || text[at] == ']')) *comma = ' ';
        if (text[at] == ',')
            comma = text + at;
        else if (!strchr(" \t\r\n", text[at]) || text[at] == '\0')
            comma = NULL;
    }
}
