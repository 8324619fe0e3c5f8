/* table.h - the rows of a text file of the tests: fields between tabs, in which %0a is a byte. Lines that
 * begin with "# " are titles. */
#pragma once

#include "support/test.h"

typedef struct {
    FILE *file;
    char line[8192], *field[4];
} test_table;

/* `path` is a file of tests/. */
static inline test_table table_open(const char *path)
{
    test_table t = {NULL};
    snprintf(t.line, sizeof t.line, TEST_SOURCE_DIR "/tests/%s", path);
    t.file = fopen(t.line, "r");
    assert_non_null(t.file);
    return t;
}

/* False at the end, where the file is closed. */
static inline bool table_next(test_table *t)
{
    int n = 0;
    do
        if (!fgets(t->line, sizeof t->line, t->file)) return fclose(t->file) > 0;
    while (strncmp(t->line, "# ", 2) == 0);
    char *to = t->field[n++] = t->line;
    for (const char *at = t->line; *at != '\n'; at++) {
        char code[3] = "";
        if (*at == '\t') t->field[n++] = to + 1;
        if (*at == '%') memcpy(code, at + 1, 2);
        *to++ = code[0] ? (char)strtol(code, NULL, 16) : *at == '\t' ? '\0' : *at;
        if (code[0]) at += 2;
    }
    *to = '\0';
    return true;
}

/* The n numbers of the next row that begins with this name. */
static inline bool table_numbers(test_table *t, const char *name, int n, int64_t *numbers)
{
    while (table_next(t)) {
        char *at = t->field[1];
        if (strcmp(t->field[0], name) != 0) continue;
        for (int i = 0; i < n; i++) numbers[i] = strtoll(at, &at, 10);
        return true;
    }
    return false;
}
