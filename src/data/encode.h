/* encode.h - a whole text as tokens of 16 or 32 bits. */
#pragma once

#include "data/tokenizer.h"

/* Bytes of a token: 2 if they are enough for the vocabulary, otherwise 4. */
int zero_encode_width(const zero_tokenizer *tok);

/* Appends the tokens of the text as uint16_t or uint32_t. A long text is cut into parts (cuts.h),
 * which `threads` threads of the rank (math/threads.h) encode; the tokens are those of one thread.
 * ZERO_ERR_INVALID if a character is not in the vocabulary; other errors are
 * zero_tokenizer_encode()'s. */
ZERO_NODISCARD zero_status zero_encode_text(const zero_tokenizer *tok,
                                            const zero_bytes *text, int threads,
                                            zero_bytes *tokens);

#define ZERO_ENCODE_PART ((size_t)1 << 16) /* bytes of a part, at least */
