/* encode_test.h - a tokenizer's encoder where it cannot fail, and texts that come back. CMocka's
 * header comes before this one. */
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

static inline void assert_round_trip(const zero_tokenizer *tok, const unsigned char *text,
                                     size_t len)
{
    int32_t *tokens = malloc((len + 1) * sizeof *tokens);
    assert_non_null(tokens);
    int64_t n = encoded(tok, text, len, tokens);
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        size_t part;
        const unsigned char *bytes = zero_tokenizer_decode(tok, tokens[i], &part);
        assert_true(part <= len - at);
        assert_memory_equal(bytes, text + at, part);
        at += part;
    }
    assert_true(at == len);
    free(tokens);
}
