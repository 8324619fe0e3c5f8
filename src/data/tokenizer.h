/* tokenizer.h - text to tokens and back: bytes, byte pair encoding on top of them, or characters.
 *
 * Tokens 0..255 are the bytes; token 256 + i joins the two tokens of merge i. Text is first
 * cut into pieces (piece.h), and no token crosses a piece. Within a piece earlier merges are
 * applied first, each from left to right. Decoding gives back any bytes unchanged.
 *
 * Characters are another kind: token i is character i of an ascending list (characters.h).
 * Source: Sennrich et al., arXiv:1508.07909; byte level as in GPT-2. */
#pragma once

#include "data/bpe.h"

typedef struct {
    char name[16]; /* as in --tokenizer NAME: "byte", "bpe:512", "char" */
    int32_t vocab;
    zero_merge *merges;   /* [vocab - 256] owned; NULL for characters */
    uint32_t *characters; /* [vocab] ascending; owned; NULL for bytes and merges */
    unsigned char *bytes; /* the tokens' texts, end to end; owned */
    uint32_t *starts;     /* [vocab + 1] into bytes; owned */
    struct zero_merge_slot *table;
    uint32_t table_mask;
} zero_tokenizer;

/* The vocabulary that "byte" or "bpe:N" asks for; 0 for "char", whose text decides it.
 * ZERO_ERR_INVALID if it is none of them. */
ZERO_NODISCARD zero_status zero_tokenizer_parse(const char *spec, int32_t *vocab);

/* The tokenizer `spec`; bpe:N learns its merges from the text, and "char" its characters; "byte"
 * does not read it. ZERO_ERR_INVALID if the text does not yield enough merges, ZERO_ERR_FORMAT for
 * characters that are not UTF-8. */
ZERO_NODISCARD zero_status zero_tokenizer_init(zero_tokenizer *tok, const char *spec,
                                               const unsigned char *text, size_t len);

/* The tokenizer with these merges, which are copied; without any it is "byte". ZERO_ERR_FORMAT
 * unless each merge joins earlier tokens into at most ZERO_PIECE_MAX bytes, and no two join the
 * same pair. */
ZERO_NODISCARD zero_status zero_tokenizer_from_merges(zero_tokenizer *tok,
                                                      const zero_merge *merges, int32_t n);

/* The tokenizer with these characters, which are copied. ZERO_ERR_FORMAT unless they are 1 to
 * ZERO_VOCAB_MAX code points in ascending order. */
ZERO_NODISCARD zero_status zero_tokenizer_from_characters(zero_tokenizer *tok,
                                                          const uint32_t *characters,
                                                          int32_t n);

void zero_tokenizer_destroy(zero_tokenizer *tok);

/* Writes at most `len` tokens and returns their number. A text cut between two pieces, or two
 * characters, encodes to the same tokens as the whole. A token is -1 where a character is not in
 * the vocabulary; bytes and merges encode anything. */
int64_t zero_tokenizer_encode(const zero_tokenizer *tok, const unsigned char *text,
                              size_t len, int32_t *tokens);

/* The bytes of a token, borrowed from the tokenizer. 0 <= token < vocab. */
const unsigned char *zero_tokenizer_decode(const zero_tokenizer *tok, int32_t token,
                                           size_t *len);

/* ---- for the files of this folder: tokenizer_char.c ---- */

/* The tokenizer of a text's characters. ZERO_ERR_FORMAT if the text is not UTF-8. */
ZERO_NODISCARD zero_status zero_tokenizer_learn_characters(zero_tokenizer *tok,
                                                           const unsigned char *text,
                                                           size_t len);

/* One token per character; -1 for a character that the vocabulary lacks, and for a byte that is
 * not UTF-8. */
int64_t zero_tokenizer_encode_characters(const zero_tokenizer *tok,
                                         const unsigned char *text, size_t len,
                                         int32_t *tokens);
