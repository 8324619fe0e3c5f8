/* bpe.h - learns the merges of a byte pair encoding from a text.
 *
 * Each merge joins the most frequent pair of neighbouring tokens within pieces into a new
 * token. Ties go to the smaller left token, then the smaller right one, so equal texts give
 * equal merges everywhere. A pair that occurs once is never joined. Cost grows with the
 * distinct pieces: a merge touches only those that have its pair. */
#pragma once

#include "base/fail.h"

enum { ZERO_VOCAB_BYTES = 256, ZERO_VOCAB_MAX = 65536 };

/* Two tokens that become one. Merge i makes token ZERO_VOCAB_BYTES + i. */
typedef struct {
    int32_t left, right;
} zero_merge;

/* Fills merges[n_wanted] and sets *n_found, which is smaller if the pairs ran out.
 * `threads` threads count the pieces of a long text (cuts.h); merges do not depend on
 * them. */
zero_status zero_bpe_train(const unsigned char *text, size_t len, int threads,
                           int32_t n_wanted, zero_merge *merges, int32_t *n_found);
