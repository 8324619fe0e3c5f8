/* cuts.h - borders between which the parts of a text can be worked on by themselves.
 *
 * A border lies between an ASCII letter and a blank or the end of a line:
 *
 *     "... the fox| saw the grapes|\n\nThey are ..."
 *
 * A piece of text ends there, in our own pieces (piece.h), in those of the patterns of
 * pattern_known.h and among characters, whatever comes before it and after it. */
#pragma once

#include "base/fail.h"

/* The first border at `from` or after it, but not 0; len if there is no other. */
size_t zero_cut_at(const unsigned char *text, size_t len, size_t from);

#define ZERO_CUT_PART ((size_t)1 << 16) /* bytes of a part, at least */

/* How many parts threads get: 1 for a short text, and for one thread. */
int64_t zero_cut_parts(size_t len, int threads);

/* Work on part i of the text; other threads work on other parts. */
typedef void zero_part_work(void *arg, int64_t i, const unsigned char *text, size_t len);

/* Has `threads` threads of the rank (math/threads.h) work on n parts of about equal length,
 * in any order; a text with few borders has empty ones. ZERO_ERR_NOMEM: no work was
 * done. */
zero_status zero_cut_run(const unsigned char *text, size_t len, int64_t n, int threads,
                         zero_part_work *work, void *arg);
