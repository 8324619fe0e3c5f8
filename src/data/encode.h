/* encode.h - a whole text as tokens of 16 bits. */
#pragma once

#include "data/tokenizer.h"
#include "io/bytes.h"

/* Appends the tokens of the text as uint16_t; the vocabulary has all of its characters.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_encode_text(const zero_tokenizer *tok,
                                            const zero_bytes *text, zero_bytes *tokens);
