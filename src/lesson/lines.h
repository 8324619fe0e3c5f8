/* lines.h - text that continues on the next line where it would become too long. */
#pragma once

#include <stdio.h>

#define ZERO_NARRATE_WIDTH 80 /* columns, at most */

typedef struct {
    FILE *out;
    int column, indent; /* where text continues on a next line */
} zero_lines;

void zero_lines_begin(zero_lines *l, int indent);
/* Prints at most ZERO_NARRATE_WIDTH bytes, which stay together. */
__attribute__((format(printf, 2, 3))) void zero_lines_put(zero_lines *l, const char *format,
                                                          ...);
/* The same for a sentence, which may be broken at its blanks. */
void zero_lines_put_words(zero_lines *l, const char *text);
void zero_lines_end(zero_lines *l);
