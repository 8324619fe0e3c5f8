/* words.h - the words of a command: of a launch line that a user gives, and of what is
 * started.
 *
 * A line is split as a shell does it as far as that is words alone: blanks between
 * words, 'text', "text" and \c. No shell runs it, so what only a shell can do ($, `, *,
 * ?, [, ~, |, &, ;, <, >, parentheses) is refused outside of quotes, and $ and ` also in
 * double ones. */
#pragma once

#include "io/bytes.h"

typedef struct {
    char **words; /* [n], and a NULL after them; owned, as are the words */
    int64_t n, room;
} zero_words;

/* Adds a word, as printf() would print it. ZERO_ERR_NOMEM. */
zero_status zero_words_add(zero_words *words, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the words of the line; `option` names it in messages. ZERO_ERR_INVALID for a
 * quote without an end, and for what needs a shell. */
zero_status zero_words_split(zero_words *words, const char *option, const char *line);
/* Puts the number in place of each {}; returns how many there were, or -1 without
 * memory. */
int zero_words_fill(zero_words *words, int number);
void zero_words_destroy(zero_words *words); /* accepts all zeros */

/* Appends the word as a shell takes it; control characters, which would garble a
 * terminal, become '?'. ZERO_ERR_NOMEM. */
zero_status zero_words_quote(const char *word, zero_bytes *text);
/* Appends "zero train" and what follows it on a command line, as a shell takes it, and a
 * zero. ZERO_ERR_NOMEM. */
zero_status zero_words_command(const char *name, int argc, char **argv, zero_bytes *text);
