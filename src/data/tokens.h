/* tokens.h - files of tokens that other programs have made.
 *
 *   llm.c     1024 bytes: 256 int32, [0] = 20240520, [1] = 1, [2] = number of tokens;
 *             then the tokens as uint16
 *   Llama-3   the same with [0] = 20240801, [1] = 7, and uint32 tokens
 *   nanoGPT   uint16 tokens and nothing else, in a file named *.bin
 *
 * All little-endian. Whatever else a file begins with, it is text.
 * Source: llm.c, llmc/dataloader.h and dev/data/data_common.py; nanoGPT,
 * data/<set>/prepare.py. */
#pragma once

#include <stdint.h>

#include "io/bytes.h"

typedef enum {
    ZERO_TOKENS_TEXT, /* no tokens: text */
    ZERO_TOKENS_LLMC,
    ZERO_TOKENS_LLAMA3,
    ZERO_TOKENS_NANOGPT,
} zero_tokens_kind;

/* "llm.c", "Llama-3", "nanoGPT", "text" */
const char *zero_tokens_name(zero_tokens_kind kind);

/* Bytes per token; 1 for text. */
int zero_tokens_width(zero_tokens_kind kind);

/* What the file holds. ZERO_ERR_FORMAT if it is one of llm.c's, but none with training
 * data. */
ZERO_NODISCARD zero_status zero_tokens_detect(const char *path, zero_tokens_kind *kind);

/* The same for a file of len bytes of which the first four, or all, are at `bytes`. */
ZERO_NODISCARD zero_status zero_tokens_recognise(const char *path,
                                                 const unsigned char *bytes, size_t len,
                                                 zero_tokens_kind *kind);

/* The vocabulary of such tokens: `given`, or if that is 0, what their makers use (llm.c
 * 50257, Llama-3 128256). nanoGPT's files may come from any: ZERO_ERR_INVALID if none is
 * given. */
ZERO_NODISCARD zero_status zero_tokens_vocab(zero_tokens_kind kind, const char *path,
                                             int64_t given, int64_t *vocab);

/* Appends a file's tokens, zero_tokens_width() bytes each in this machine's order. On
 * failure `tokens` is as long as before. ZERO_ERR_FORMAT, naming file and place, if the
 * file's length or header is wrong or a token is not below `vocab`. */
ZERO_NODISCARD zero_status zero_tokens_read(const char *path, zero_tokens_kind kind,
                                            int64_t vocab, zero_bytes *tokens);

/* What zero_tokens_read() does once it has the file: tokens->bytes from `begin` on. */
ZERO_NODISCARD zero_status zero_tokens_take(const char *path, zero_tokens_kind kind,
                                            int64_t vocab, size_t begin,
                                            zero_bytes *tokens);
