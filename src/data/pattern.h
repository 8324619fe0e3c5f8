/* pattern.h - text cut into pieces by the regular expressions of a tokenizer.
 *
 * Matches are pieces, and so is what lies between two of them (Hugging Face's Split,
 * "Isolated"). With several patterns, each cuts the pieces of the one before and sees
 * nothing beyond a piece. Accepted is the syntax that means the same to PCRE2 and to
 * Oniguruma, which the reference implementation uses (pattern_syntax.c). Threads may use
 * one pattern at the same time. */
#pragma once

#include "base/fail.h"
#include "data/pattern_known.h"

typedef struct zero_pattern zero_pattern;

/* Hostile text ends in an error and cannot hang a run: matches that take more than FEW
 * steps share MOST steps and EACH more per byte of the text. To cut n blanks Llama-3's
 * pattern takes n steps in one match; words take less than 100. */
enum { ZERO_PATTERN_FEW = 1000, ZERO_PATTERN_EACH = 64, ZERO_PATTERN_MOST = 50000000 };

/* `where` begins messages. ZERO_ERR_UNSUPPORTED, with the place, for syntax that is not
 * accepted or a pattern that matches nothing at all (the empty text). */
zero_status zero_pattern_compile(const char *where, const char *regex,
                                 zero_pattern **pattern);
void zero_pattern_destroy(zero_pattern *pattern); /* accepts NULL */

/* Whether it is one of pattern_known.h, none of which sees past a border of cuts.h. */
bool zero_pattern_is_known(const zero_pattern *pattern);

typedef zero_status (*zero_piece_visit)(void *arg, const unsigned char *piece, size_t len);

/* Calls `visit` with each piece of the text, in order. A byte that is not UTF-8 is a piece
 * of its own. The first failure ends the walk. ZERO_ERR_UNSUPPORTED if matches take too
 * many steps. */
zero_status zero_pattern_split(zero_pattern *const *patterns, int n,
                               const unsigned char *text, size_t len,
                               zero_piece_visit visit, void *arg);
