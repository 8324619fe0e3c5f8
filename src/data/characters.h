/* characters.h - the characters of a text, for the vocabulary of --tokenizer char.
 *
 * A character is a Unicode code point in UTF-8. The vocabulary of a text is the ascending
 * list of those that occur in it, and a character's place there is its token:
 * sorted(set(text)) in nanoGPT's data/shakespeare_char/prepare.py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/status.h"

/* True for all code points but the halves of UTF-16's pairs. */
bool zero_character_is_valid(int64_t character);

/* The bytes of the character that begins at text[0], len >= 1; 0 if it is not UTF-8. */
size_t zero_character_read(const unsigned char *text, size_t len, uint32_t *character);

/* Writes the character and returns its bytes, 1 to 4. */
size_t zero_character_write(uint32_t character, unsigned char text[4]);

/* The vocabulary of the text, for the caller to free. ZERO_ERR_FORMAT if it is not UTF-8,
 * has a NUL, or more than `most` characters. */
ZERO_NODISCARD zero_status zero_characters_learn(const unsigned char *text, size_t len,
                                                 int32_t most, uint32_t **characters,
                                                 int32_t *n);

/* The token of a character; -1 if the vocabulary lacks it. */
int32_t zero_characters_find(const uint32_t *characters, int32_t n, uint32_t character);
