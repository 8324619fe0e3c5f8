/* added.h - tokens that are found in a text before it is cut into pieces, such as
 * <|endoftext|>.
 *
 * The leftmost one is taken; if several begin there, the longest. Those that are not
 * "normalized" are looked for in the whole text first, then the others in what is left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/status.h"

typedef struct {
    char *text; /* owned; ends with a zero, which does not count */
    size_t len;
    int32_t id;
} zero_added_token;

typedef struct {
    zero_added_token *tokens; /* [n] sorted; owned */
    int64_t n, capacity;
    bool begins[256]; /* a token begins with this byte */
} zero_added;

/* Adds a token of at least one byte, which is copied. Tokens are found after
 * zero_added_sort(), which is false if two are the same. */
ZERO_NODISCARD zero_status zero_added_add(zero_added *added, const unsigned char *text,
                                          size_t len, int32_t id);
ZERO_NODISCARD bool zero_added_sort(zero_added *added);
void zero_added_destroy(zero_added *added);

/* The first token in text[len] from `from` on, which begins at *at; NULL if there is
 * none. */
const zero_added_token *zero_added_find(const zero_added *added, const unsigned char *text,
                                        size_t len, size_t from, size_t *at);
