/* print_text.h - generated text on a terminal. */
#pragma once

#include "data/tokenizer.h"

/* Prints the text of n tokens: invalid UTF-8, and whatever would control a terminal or turn
 * the direction of writing, becomes '?'; `raw`: all bytes as they are.
 * ZERO_ERR_NOMEM. */
zero_status zero_print_tokens(const zero_tokenizer *tokenizer, const int32_t *tokens,
                              int64_t n, bool raw, FILE *out);
