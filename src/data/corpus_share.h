/* corpus_share.h - one corpus for several ranks: the tokens lie in memory that they share,
 * and the rest, a few KiB and the tokenizer, travels there as bytes.
 *
 *     shared memory   | head | tokenizer | tokens ...
 *                     0                  zero_corpus_packed.len, a multiple of 64 */
#pragma once

#include "data/corpus.h"

/* Bytes of all tokens. */
size_t zero_corpus_token_bytes(const zero_corpus *corpus);

/* Appends head and tokenizer to an empty `packed`, for the same program on another rank. */
zero_status zero_corpus_pack(const zero_corpus *corpus, zero_bytes *packed);

/* Copies what was packed, and the tokens after it, to `shared`, which is aligned to 64
 * bytes. From here on the corpus borrows its tokens there. */
void zero_corpus_move(zero_corpus *corpus, const zero_bytes *packed, char *shared);

/* The corpus at `shared`, whose tokens it borrows. */
zero_status zero_corpus_unpack(char *shared, zero_corpus *corpus);
