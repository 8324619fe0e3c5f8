/* tokenizer.h - text to tokens and back: bytes, byte pair encoding on top of them, or
 * characters.
 *
 * There are three kinds. Our own: tokens 0..255 are the bytes, token 256 + i joins the two
 * tokens of merge i, and text is first cut into pieces by piece.h. Read from files
 * (tokenizer_json.h): any ids; added tokens such as <|endoftext|> are found in the text
 * first, what is left is normalized (normal.h) and cut into pieces, by patterns (pattern.h)
 * or at blanks. In both no token crosses a piece, and within a piece earlier merges are
 * applied first, each from left to right. Decoding gives back any bytes unchanged, but for
 * what is normalized. Characters: token i is character i of an ascending list
 * (tokenizer_char.c). Source: Sennrich et al., arXiv:1508.07909; byte level as in GPT-2,
 * characters with bytes for those without a token as in SentencePiece. */
#pragma once

#include "data/merging.h"
#include "data/pattern.h"
#include "io/bytes.h"

enum { ZERO_TOKENIZER_PATTERNS = 8, ZERO_TOKENIZER_AROUND = 48 };

/* Where a blank is put before a text, or before what lies between added tokens. */
typedef enum {
    ZERO_BLANK_NEVER,
    ZERO_BLANK_FIRST,  /* before the text, unless it begins with one */
    ZERO_BLANK_EACH,   /* before each part, unless it begins with one */
    ZERO_BLANK_ALWAYS, /* before each part in any case */
} zero_blank;

/* Tokens that are found in a text before it is cut into pieces, such as
 * <|endoftext|>.
 *
 * The leftmost one is taken; if several begin there, the longest. Those that are not
 * "normalized" are looked for in the whole text first, then the others in what is left. */
typedef struct {
    char *text; /* owned; ends with a zero, which does not count */
    size_t len;
    int32_t id;
} zero_added_token;

typedef struct {
    zero_added_token *tokens; /* [n] sorted; owned */
    int64_t n, capacity;
    bool begins[256]; /* a token begins with this byte */
} zero_added;

typedef struct {
    char name[32]; /* "byte", "bpe:512", "char"; one from a file: the file's name */
    int32_t vocab;
    unsigned char *bytes; /* the tokens' texts, end to end; owned */
    uint32_t *starts;     /* [vocab + 1] into bytes; owned */
    zero_merges table;

    /* our own */
    zero_merge *merges; /* [vocab - 256] owned */
    bool characters;    /* each token is one, in ascending order */

    /* from a file */
    bool is_foreign;
    int32_t byte_ids[ZERO_VOCAB_BYTES]; /* -1 - byte: it has none */
    bool lacks_bytes;                   /* one or more are below 0 */
    zero_added added[2];                /* not normalized, normalized */
    zero_pattern *patterns[ZERO_TOKENIZER_PATTERNS];
    int n_patterns;
    bool cuts_as_own;    /* by piece.h, without patterns: our own, written and read */
    bool ignores_merges; /* a piece that is a token is not merged */
    bool composes;       /* texts are brought into NFC */
    /* Pieces are made of characters, and of bytes for those that are no tokens; U+2581
     * stands for a blank. */
    bool has_marks;
    bool marks_early; /* blanks become marks before normalized tokens are found */
    zero_blank blank;
    bool cuts_at_blanks;          /* each begins a piece, not only the first of several */
    bool joins_words;             /* a merge has a blank after something else */
    bool joins_lines;             /* or a line's end after a letter */
    bool strips_blank;            /* a blank that begins a decoded text is left out */
    struct zero_text_slot *texts; /* tokens by their text; owned */
    uint32_t text_mask;
    int32_t end_of_text; /* the token <|endoftext|>; -1: none */
    /* The first token that its post-processor adds around a text, or the kind of that
     * processor: texts get none of it here. "": it adds nothing. */
    char around[ZERO_TOKENIZER_AROUND];
    zero_bytes file; /* tokenizer.json, byte for byte */
} zero_tokenizer;

/* True for the names of our own, "byte", "char" and "bpe:...", which need no file. */
bool zero_tokenizer_is_name(const char *spec);

/* The vocabulary that "byte" or "bpe:N" asks for; 0 for "char", whose text decides it.
 * ZERO_ERR_INVALID if it is none of them. */
zero_status zero_tokenizer_parse(const char *spec, int32_t *vocab);

/* The tokenizer `spec`; bpe:N learns its merges from the text, and "char" its characters;
 * "byte" does not read it. `threads` threads of the rank change nothing but its time.
 * ZERO_ERR_INVALID if the text does not yield enough merges, ZERO_ERR_FORMAT for characters
 * that are not UTF-8. */
zero_status zero_tokenizer_init(int threads, zero_tokenizer *tok, const char *spec,
                                const unsigned char *text, size_t len);

/* The tokenizer with these merges, which are copied; without any it is "byte".
 * ZERO_ERR_FORMAT unless each merge joins earlier tokens into at most ZERO_PIECE_MAX bytes,
 * no two join the same pair, and no two make the same text. */
zero_status zero_tokenizer_from_merges(zero_tokenizer *tok, const zero_merge *merges,
                                       int32_t n);

void zero_tokenizer_destroy(zero_tokenizer *tok);

/* True for "byte", whose tokens are the bytes of a text. */
bool zero_tokenizer_is_bytes(const zero_tokenizer *tok);

/* Tokens that a text of `len` bytes may have, at most: `len`, but for those that are
 * normalized. */
size_t zero_tokenizer_most(const zero_tokenizer *tok, size_t len);

/* Writes *n tokens, at most zero_tokenizer_most(). A text that our own tokenizer cuts
 * between two pieces encodes to the same tokens as the whole. Where the vocabulary lacks a
 * character the token is -1, and where it lacks a byte, which our own never do, -1 - byte.
 * ZERO_ERR_NOMEM; ZERO_ERR_UNSUPPORTED if a pattern gives up. */
zero_status zero_tokenizer_encode(const zero_tokenizer *tok, const unsigned char *text,
                                  size_t len, int32_t *tokens, int64_t *n);

/* The same, in parts: `take` gets the tokens of each piece. is_rest: the text is the rest
 * of one that was cut at a border (cuts.h). */
typedef zero_status (*zero_token_sink)(void *arg, int64_t n, const int32_t *tokens);
zero_status zero_tokenizer_encode_to(const zero_tokenizer *tok, bool is_rest,
                                     const unsigned char *text, size_t len,
                                     zero_token_sink take, void *arg);

/* Bytes of a text that n tokens stand for, where one below 0 stands for one byte. */
size_t zero_tokenizer_span(const zero_tokenizer *tok, int64_t n, const int32_t *tokens);

/* ZERO_ERR_INVALID: the tokenizer lacks this byte, at byte `at` of `where`, as in
 * "--prompt". */
zero_status zero_tokenizer_refuse_byte(const zero_tokenizer *tok, const char *where,
                                       unsigned char byte, size_t at);

/* The bytes of a token, borrowed from the tokenizer. 0 <= token < vocab. */
const unsigned char *zero_tokenizer_decode(const zero_tokenizer *tok, int32_t token,
                                           size_t *len);

/* Appends the text of n tokens, none of them below 0. */
zero_status zero_tokenizer_decode_all(const zero_tokenizer *tok, int64_t n,
                                      const int32_t *tokens, zero_bytes *text);

/* True if both have the same tokens. Otherwise *token is the first that has other texts. */
bool zero_tokenizer_same_texts(const zero_tokenizer *a, const zero_tokenizer *b,
                               int32_t *token);

/* ---- for the files of this folder ---- */

/* tokenizer_encode.c: makes `texts` of the tokens for which has_text[vocab] is true; NULL:
 * of all. ZERO_ERR_FORMAT if two of them have the same text. */
zero_status zero_tokenizer_index_texts(zero_tokenizer *tok, const bool *has_text);

/* tokenizer_char.c: the tokenizer of a text's characters. ZERO_ERR_FORMAT if it is not
 * UTF-8, has a NUL, or too many characters. */
zero_status zero_tokenizer_learn_characters(zero_tokenizer *tok, const unsigned char *text,
                                            size_t len);
