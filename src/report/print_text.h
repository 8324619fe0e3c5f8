/* print_text.h - text of a model on a terminal. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "data/tokenizer.h"

/* Prints UTF-8; a byte that is none, and whatever would control a terminal, becomes '?'. */
void zero_print_text(const unsigned char *text, size_t n, FILE *out);

/* The same for the text of n tokens; `raw`: all bytes as they are. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_print_tokens(const zero_tokenizer *tokenizer,
                                             const int32_t *tokens, int64_t n, bool raw,
                                             FILE *out);
