/* bpe.h - learns the merges of a byte pair encoding from a text.
 *
 * Again and again the pair of neighbouring tokens that occurs most often, within pieces, is
 * joined into a new token. Ties go to the smaller left token, then the smaller right one,
 * so that equal texts give equal merges everywhere. A pair that occurs once is never
 * joined. Only different pieces cost time: each merge touches those that hold its pair. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "zero/status.h"

enum { ZERO_VOCAB_BYTES = 256, ZERO_VOCAB_MAX = 65536 };

/* Two tokens that become one. Merge i makes token ZERO_VOCAB_BYTES + i. */
typedef struct {
    int32_t left, right;
} zero_merge;

/* Fills merges[n_wanted] and sets *n_found, which is smaller if the pairs ran out. */
ZERO_NODISCARD zero_status zero_bpe_train(const unsigned char *text, size_t len,
                                          int32_t n_wanted, zero_merge *merges,
                                          int32_t *n_found);
