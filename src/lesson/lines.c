#include "lesson/lines.h"

#include <stdarg.h>
#include <string.h>

void zero_lines_begin(zero_lines *l, int indent)
{
    l->indent = indent + 2;
    l->column = indent;
    fprintf(l->out, "%*s", indent, "");
}

void zero_lines_put(zero_lines *l, const char *format, ...)
{
    char text[ZERO_NARRATE_WIDTH + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *from = text;
    if (l->column + (int)strlen(text) > ZERO_NARRATE_WIDTH) {
        fprintf(l->out, "\n%*s", l->indent, "");
        l->column = l->indent;
        while (*from == ' ') from++;
    }
    fputs(from, l->out);
    l->column += (int)strlen(from);
}

void zero_lines_put_words(zero_lines *l, const char *text)
{
    while (*text) {
        int n = (int)strcspn(text + 1, " ") + 1;
        zero_lines_put(l, "%.*s", n, text);
        text += n;
    }
}

void zero_lines_end(zero_lines *l)
{
    fputc('\n', l->out);
    l->column = 0;
}
