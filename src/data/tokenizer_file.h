/* tokenizer_file.h - a tokenizer as a file: Hugging Face's tokenizer.json, in checkpoints,
 * exports and beside the weights of other programs.
 *
 * Ours are written with a pre-tokenizer that cuts text into the pieces of piece.h, so that
 * other programs give the same ids; one that was read is written byte for byte. Files of
 * earlier versions of this program, {"format": "zero tokenizer", ...}, are read, too.
 * Characters are the words of a WordLevel model. */
#pragma once

#include "data/tokenizer_beside.h"

/* Bytes; Llama-3's tokenizer.json has 17 MB. */
#define ZERO_TOKENIZER_FILE_MAX ((size_t)64 << 20)

/* Appends the file's bytes. On failure `out` is as long as before. */
zero_status zero_tokenizer_write(const zero_tokenizer *tok, zero_bytes *out);

/* The tokenizer in such a file: it encodes and decodes as the one written. `path` is for
 * messages. ZERO_ERR_FORMAT if it is not a tokenizer, is newer, or contradicts itself;
 * ZERO_ERR_UNSUPPORTED as in tokenizer_json.h. */
zero_status zero_tokenizer_parse_file(const char *path, const void *bytes, size_t len,
                                      zero_tokenizer *out);

/* The same with what lies beside it: tokens that this adds are in the file as it is written
 * again. */
zero_status zero_tokenizer_parse_beside(const char *path, const void *bytes, size_t len,
                                        const zero_beside *beside, zero_tokenizer *out);
