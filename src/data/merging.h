/* merging.h - the merges of a tokenizer, applied to a piece of text.
 *
 * The earliest merge that joins any neighbours is applied first, from left to right. Short
 * pieces are scanned for the next merge; for long ones a heap holds the candidates, so that
 * a text without any blank takes n log n steps. */
#pragma once

#include "data/bpe.h"

typedef struct {
    struct zero_merge_slot *slots; /* owned */
    uint32_t mask;
} zero_merges;

zero_status zero_merges_init(zero_merges *merges, int32_t n);
void zero_merges_destroy(zero_merges *merges);

/* Merge number `rank` makes `token`. False if an earlier merge joins the same pair. */
bool zero_merges_add(zero_merges *merges, zero_merge pair, int32_t rank, int32_t token);

/* Joins the n tokens in place and sets *left to the number that is left. ZERO_ERR_NOMEM. */
zero_status zero_merges_apply(const zero_merges *merges, int64_t n, int32_t *ids,
                              int64_t *left);
