/* tokenizer_file.h - a tokenizer as a file, for checkpoints to carry.
 *
 *     {"format": "zero tokenizer", "version": 1, "name": "bpe:512",
 *      "merges": [[101, 32], [116, 104], ...]}
 *
 * Token 256 + i joins the two tokens of merge i, which are below it. "byte" has no merges.
 *
 *     {"format": "zero tokenizer", "version": 1, "name": "char", "characters": [10, 32, 33, ...]}
 *
 * Token i is the code point i of this list, which ascends. */
#pragma once

#include "data/tokenizer.h"
#include "io/bytes.h"

/* Bytes; 65280 merges take less than 1 MB. */
#define ZERO_TOKENIZER_FILE_MAX ((size_t)4 << 20)

/* Appends the file's bytes. On failure `out` is as long as before. */
ZERO_NODISCARD zero_status zero_tokenizer_write(const zero_tokenizer *tok, zero_bytes *out);

/* The tokenizer in such a file: it encodes and decodes as the one written. `path` is for
 * messages. ZERO_ERR_FORMAT if it is not a tokenizer, is newer, or its merges or
 * characters are not those that its name promises. */
ZERO_NODISCARD zero_status zero_tokenizer_parse_file(const char *path, const void *bytes,
                                                     size_t len, zero_tokenizer *out);
