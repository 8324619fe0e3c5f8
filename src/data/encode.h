/* encode.h - a whole text as tokens of 16 or 32 bits. */
#pragma once

#include "data/tokenizer.h"

/* Bytes of a token: 2 if they are enough for the vocabulary, otherwise 4. */
int zero_encode_width(const zero_tokenizer *tok);

/* Appends the tokens of the text as uint16_t or uint32_t. A long text is cut into parts,
 * which `threads` threads encode (cuts.h), if that cannot change a token; the tokens are
 * those of one thread. ZERO_ERR_INVALID, with the place, if a character or a byte is not in
 * the vocabulary; other errors are zero_tokenizer_encode()'s. */
zero_status zero_encode_text(const zero_tokenizer *tok, const zero_bytes *text, int threads,
                             zero_bytes *tokens);

/* Whether the parts of any text, encoded by themselves, have the tokens of the whole. Not
 * with other patterns than those of pattern_known.h, which may see past a border, and not
 * with an added token that has a border inside. */
bool zero_encode_may_cut(const zero_tokenizer *tok);
