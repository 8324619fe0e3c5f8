/* encode_test.h - a tokenizer's encoder where it cannot fail. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "data/tokenizer.h"

static inline int64_t encoded(const zero_tokenizer *tok, const unsigned char *text,
                              size_t len, int32_t *tokens)
{
    int64_t n = -1;
    if (zero_tokenizer_encode(tok, text, len, tokens, &n) == ZERO_OK) return n;
    fprintf(stderr, "%s\n", zero_last_error());
    abort();
}
