/* tokens.h - files of tokens, made by other programs.
 *
 *   llm.c     1024 bytes: 256 int32, [0] = 20240520, [1] = 1, [2] = number of tokens;
 *             then the tokens as uint16
 *   Llama-3   the same with [0] = 20240801, [1] = 7, and uint32 tokens
 *   nanoGPT   uint16 tokens and nothing else, in a file named *.bin
 *
 * All little-endian. Any other file is text.
 * Source: llm.c, llmc/dataloader.h and dev/data/data_common.py; nanoGPT,
 * data/<set>/prepare.py. */
#pragma once

#include <stdint.h>

#include "io/bytes.h"

typedef enum {
    ZERO_TOKENS_TEXT, /* not tokens */
    ZERO_TOKENS_LLMC,
    ZERO_TOKENS_LLAMA3,
    ZERO_TOKENS_NANOGPT,
} zero_tokens_kind;

/* "llm.c", "Llama-3", "nanoGPT", "text" */
const char *zero_tokens_name(zero_tokens_kind kind);

/* Bytes per token; 1 for text. */
int zero_tokens_width(zero_tokens_kind kind);

/* The kind of a file. ZERO_ERR_FORMAT if it is an llm.c file without training tokens. */
ZERO_NODISCARD zero_status zero_tokens_detect(const char *path, zero_tokens_kind *kind);

/* The same for a file of len bytes; its first four, or all if there are fewer, are at `bytes`. */
ZERO_NODISCARD zero_status zero_tokens_recognise(const char *path,
                                                 const unsigned char *bytes, size_t len,
                                                 zero_tokens_kind *kind);

/* The vocabulary of such tokens: `given`, or if that is 0, their makers' (llm.c 50257, Llama-3
 * 128256). nanoGPT's files may have any, so for them 0 is ZERO_ERR_INVALID. */
ZERO_NODISCARD zero_status zero_tokens_vocab(zero_tokens_kind kind, const char *path,
                                             int64_t given, int64_t *vocab);

/* Appends a file's tokens, zero_tokens_width() bytes each, in this machine's byte order. On
 * failure `tokens` is as long as before. ZERO_ERR_FORMAT, naming file and place, if the
 * file's length or header is wrong or a token is not below `vocab`. */
ZERO_NODISCARD zero_status zero_tokens_read(const char *path, zero_tokens_kind kind,
                                            int64_t vocab, zero_bytes *tokens);

/* Turns a whole file, at tokens->bytes from `begin` on, into its tokens. */
ZERO_NODISCARD zero_status zero_tokens_take(const char *path, zero_tokens_kind kind,
                                            int64_t vocab, size_t begin,
                                            zero_bytes *tokens);
