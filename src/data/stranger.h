/* stranger.h - files that are not what an option takes: packed texts, arrays, tables,
 * indices, weights and other programs' tokenizers, known by their first bytes.
 *
 * Read as text or as tokens, such a file trains a model on something that nobody meant. So
 * it is refused, with its name and with what to do. */
#pragma once

#include "base/fail.h"

#define ZERO_STRANGER_BYTES 8192 /* of a file's beginning, which decide */

/* ZERO_ERR_FORMAT if a file that begins with bytes[len] is one of them. `expected` is for
 * the message, as in "text". With is_text only the marks of files that are not text count,
 * too: a file of numbers may begin with these by chance. */
zero_status zero_stranger_check(const char *path, const unsigned char *bytes, size_t len,
                                bool is_text, const char *expected);

/* True if these first bytes of a file are not a text's: more than one in a thousand is
 * zero. Of compressed data one in 256 is. */
bool zero_stranger_is_binary(const unsigned char *bytes, size_t len);

/* The refusal of such a file. */
zero_status zero_stranger_refuse_binary(const char *path);

/* Bytes of UTF-8's byte order mark: 3 or 0. Some editors begin a text with it. It is not a
 * part of the text. */
size_t zero_stranger_mark(const unsigned char *bytes, size_t len);
