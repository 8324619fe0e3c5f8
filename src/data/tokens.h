/* tokens.h - files of tokens, made by other programs.
 *
 *   llm.c     1024 bytes: 256 int32, [0] = 20240520, [1] = 1, [2] = number of tokens;
 *             then the tokens as uint16
 *   Llama-3   the same with [0] = 20240801, [1] = 7, and uint32 tokens
 *   raw       tokens and nothing else, of 1, 2, 4 or 8 bytes: the number that --token-bytes
 *             gives, or that Megatron's index says (X.idx beside X.bin); else a file named
 *             *.bin has 2, as nanoGPT's
 *
 * All little-endian. Any other file is text (stranger.h says which are neither). Where 2 is
 * an assumption, a file is refused that shows it to be wrong. Source: llm.c,
 * llmc/dataloader.h and dev/data/data_common.py; nanoGPT, data/<set>/prepare.py;
 * Megatron-LM, megatron/core/datasets/indexed_dataset.py. */
#pragma once

#include "io/bytes.h"

typedef enum {
    ZERO_TOKENS_TEXT, /* not tokens */
    ZERO_TOKENS_LLMC,
    ZERO_TOKENS_LLAMA3,
    ZERO_TOKENS_RAW,
} zero_tokens_kind;

typedef struct {
    zero_tokens_kind kind;
    int bytes;       /* of a token in the file; 1 for text */
    bool is_assumed; /* no option, index or header says how many bytes */
} zero_tokens_format;

/* Ids that a file may hold: those below vocab, which `whose` has: "the vocabulary" if it is
 * NULL. */
typedef struct {
    int64_t vocab;
    const char *whose;
} zero_tokens_limit;

/* "llm.c", "Llama-3", "nanoGPT" (raw, 2 bytes), "uint32" (raw, 4 bytes), "text" */
const char *zero_tokens_name(zero_tokens_format format);

/* Bytes of a token in memory: as in the file, but at most 4. */
int zero_tokens_width(zero_tokens_format format);

/* ZERO_ERR_INVALID unless it is 0, for not given, or the bytes that a token may have. */
zero_status zero_tokens_check_bytes(int64_t token_bytes);

/* The format of an open file; *is_binary if it would be text, but is not. token_bytes are
 * those of the option, 0: not given. ZERO_ERR_FORMAT for a stranger, and where option,
 * index and magic number contradict each other. */
zero_status zero_tokens_detect(const zero_file *file, int token_bytes,
                               zero_tokens_format *format, bool *is_binary);

/* The same for a file that begins with bytes[len], without looking for its index. */
zero_status zero_tokens_recognise(const char *path, const unsigned char *bytes, size_t len,
                                  int token_bytes, zero_tokens_format *format);

/* The bytes of a token that an index of Megatron's says, which begins with bytes[len]. */
zero_status zero_tokens_read_index(const char *path, const unsigned char *bytes, size_t len,
                                   int *token_bytes);

/* The vocabulary of such tokens: `given`, or if that is 0, their makers' (llm.c 50257,
 * Llama-3 128256; a byte's 256). Other raw tokens may have any, so for them 0 is
 * ZERO_ERR_INVALID; so is more than assumed bytes reach. */
zero_status zero_tokens_vocab(zero_tokens_format format, const char *path, int64_t given,
                              int64_t *vocab);

/* Appends a file's tokens, zero_tokens_width() bytes each, in this machine's byte order. On
 * failure `tokens` is as long as before. ZERO_ERR_FORMAT, naming file and place, if the
 * file's length or header is wrong, a token is not below the limit, or its bytes were
 * assumed and are others. */
zero_status zero_tokens_read(const char *path, zero_tokens_format format,
                             zero_tokens_limit limit, zero_bytes *tokens);

/* Turns a whole file, at tokens->bytes from `begin` on, into its tokens. */
zero_status zero_tokens_take(const char *path, zero_tokens_format format,
                             zero_tokens_limit limit, size_t begin, zero_bytes *tokens);
