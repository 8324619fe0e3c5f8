/* alphabet.h - GPT-2's names for bytes: one printable character each, so that tokens of any
 * bytes can be written as text. The 188 printable bytes of Latin-1 stand for themselves,
 * the other 68 are U+0100 and on, in order: a blank is U+0120. Source: openai/gpt-2,
 * src/encoder.py, bytes_to_unicode(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ZERO_LETTER 5 /* bytes of a letter and its final zero, at most */

/* The letter of a byte, as UTF-8. */
void zero_alphabet_letter(unsigned char byte, char letter[ZERO_LETTER]);

/* Writes the bytes that `text`, in UTF-8, names to out[], which has room for as many bytes
 * as the text has. False if the text has a character that is not a letter of the
 * alphabet. */
bool zero_alphabet_bytes(const char *text, unsigned char *out, size_t *len);
