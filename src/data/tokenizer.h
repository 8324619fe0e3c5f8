/* tokenizer.h - text to tokens and back: bytes, byte pair encoding on top of them, or
 * characters.
 *
 * There are three kinds. Our own: tokens 0..255 are the bytes, token 256 + i joins the two
 * tokens of merge i, and text is first cut into pieces by piece.h. Read from files
 * (tokenizer_json.h): any ids; added tokens such as <|endoftext|> are found in the text
 * first, and what is left is cut into pieces by patterns (pattern.h). In both no token
 * crosses a piece, and within a piece earlier merges are applied first, each from left to
 * right. Decoding gives back any bytes unchanged. Characters: token i is character i of an
 * ascending list (characters.h). Source: Sennrich et al., arXiv:1508.07909; byte level as
 * in GPT-2. */
#pragma once

#include <stdbool.h>

#include "data/added.h"
#include "data/merging.h"
#include "data/pattern.h"
#include "io/bytes.h"

enum { ZERO_TOKENIZER_PATTERNS = 8 };

typedef struct {
    char name[32]; /* "byte", "bpe:512", "char"; one from a file: the file's name */
    int32_t vocab;
    unsigned char *bytes; /* the tokens' texts, end to end; owned */
    uint32_t *starts;     /* [vocab + 1] into bytes; owned */
    zero_merges table;

    /* our own */
    zero_merge *merges;   /* [vocab - 256] owned */
    uint32_t *characters; /* [vocab] ascending; owned; NULL for the other kinds */

    /* from a file */
    bool is_foreign;
    int32_t byte_ids[ZERO_VOCAB_BYTES]; /* -1: it has none */
    bool lacks_bytes;                   /* one or more are -1 */
    zero_added added[2];                /* not normalized, normalized */
    zero_pattern *patterns[ZERO_TOKENIZER_PATTERNS];
    int n_patterns;
    bool cuts_as_own;    /* by piece.h, without patterns: our own, written and read */
    bool ignores_merges; /* a piece that is a token is not merged */
    struct zero_text_slot *texts; /* tokens by their text; owned */
    uint32_t text_mask;
    int32_t end_of_text; /* the token <|endoftext|>; -1: none */
    /* The first token that its post-processor adds around a text, or the kind of that
     * processor: texts get none of it here. "": it adds nothing. */
    char around[48];
    zero_bytes file; /* tokenizer.json, byte for byte */
} zero_tokenizer;

/* True for the names of our own, "byte", "char" and "bpe:...", which need no file. */
bool zero_tokenizer_is_name(const char *spec);

/* The vocabulary that "byte" or "bpe:N" asks for; 0 for "char", whose text decides it.
 * ZERO_ERR_INVALID if it is none of them. */
ZERO_NODISCARD zero_status zero_tokenizer_parse(const char *spec, int32_t *vocab);

/* The tokenizer `spec`; bpe:N learns its merges from the text, and "char" its characters;
 * "byte" does not read it. ZERO_ERR_INVALID if the text does not yield enough merges,
 * ZERO_ERR_FORMAT for characters that are not UTF-8. */
ZERO_NODISCARD zero_status zero_tokenizer_init(zero_tokenizer *tok, const char *spec,
                                               const unsigned char *text, size_t len);

/* The same by threads of the rank, which change nothing but its time. */
ZERO_NODISCARD zero_status zero_tokenizer_init_by(int threads, zero_tokenizer *tok,
                                                  const char *spec,
                                                  const unsigned char *text, size_t len);

/* The tokenizer with these merges, which are copied; without any it is "byte".
 * ZERO_ERR_FORMAT unless each merge joins earlier tokens into at most ZERO_PIECE_MAX bytes,
 * no two join the same pair, and no two make the same text. */
ZERO_NODISCARD zero_status zero_tokenizer_from_merges(zero_tokenizer *tok,
                                                      const zero_merge *merges, int32_t n);

/* The tokenizer with these characters, which are copied. ZERO_ERR_FORMAT unless they are 1
 * to ZERO_VOCAB_MAX code points in ascending order. */
ZERO_NODISCARD zero_status zero_tokenizer_from_characters(zero_tokenizer *tok,
                                                          const uint32_t *characters,
                                                          int32_t n);

void zero_tokenizer_destroy(zero_tokenizer *tok);

/* True for "byte", whose tokens are the bytes of a text. */
bool zero_tokenizer_is_bytes(const zero_tokenizer *tok);

/* Writes *n tokens, at most `len`. A text that our own tokenizer cuts between two pieces
 * encodes to the same tokens as the whole. A token is -1 where the vocabulary lacks a
 * character, or a byte, which our own bytes and merges never do. ZERO_ERR_NOMEM;
 * ZERO_ERR_UNSUPPORTED if a pattern gives up. */
ZERO_NODISCARD zero_status zero_tokenizer_encode(const zero_tokenizer *tok,
                                                 const unsigned char *text, size_t len,
                                                 int32_t *tokens, int64_t *n);

/* The same, in parts: `take` gets the tokens of each piece. */
typedef zero_status (*zero_token_sink)(void *arg, int64_t n, const int32_t *tokens);
ZERO_NODISCARD zero_status zero_tokenizer_encode_to(const zero_tokenizer *tok,
                                                    const unsigned char *text, size_t len,
                                                    zero_token_sink take, void *arg);

/* Bytes of a text that n tokens stand for, where -1 stands for one byte. */
size_t zero_tokenizer_span(const zero_tokenizer *tok, int64_t n, const int32_t *tokens);

/* ZERO_ERR_INVALID: the tokenizer lacks this byte, at byte `at` of `where`, as in
 * "--prompt". */
ZERO_NODISCARD zero_status zero_tokenizer_refuse_byte(const zero_tokenizer *tok,
                                                      const char *where, unsigned char byte,
                                                      size_t at);

/* The bytes of a token, borrowed from the tokenizer. 0 <= token < vocab. */
const unsigned char *zero_tokenizer_decode(const zero_tokenizer *tok, int32_t token,
                                           size_t *len);

/* True if both have the same tokens. Otherwise *token is the first that has other texts. */
bool zero_tokenizer_same_texts(const zero_tokenizer *a, const zero_tokenizer *b,
                               int32_t *token);

/* ---- for the files of this folder ---- */

/* tokenizer_encode.c: makes `texts` of the tokens for which has_text[vocab] is true; NULL:
 * of all. ZERO_ERR_FORMAT if two of them have the same text. */
ZERO_NODISCARD zero_status zero_tokenizer_index_texts(zero_tokenizer *tok,
                                                      const bool *has_text);

/* tokenizer_char.c: the tokenizer of a text's characters. ZERO_ERR_FORMAT if the text is
 * not
 * UTF-8. */
ZERO_NODISCARD zero_status zero_tokenizer_learn_characters(zero_tokenizer *tok,
                                                           const unsigned char *text,
                                                           size_t len);
/* One token per character; -1 for a character that the vocabulary lacks, and for a byte
 * that is not UTF-8. */
ZERO_NODISCARD zero_status zero_tokenizer_encode_characters(const zero_tokenizer *tok,
                                                            const unsigned char *text,
                                                            size_t len,
                                                            zero_token_sink take,
                                                            void *arg);
