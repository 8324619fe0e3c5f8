/* corpus.h - --data SPEC as one array of tokens.
 *
 *   stories[:SIZE]   generated (stories.h); SIZE in bytes, as in 4M or 4MiB  bpe:512
 *   self             the sources of this program                             byte
 *   lesson           eight letters, in an order that a child can continue    char
 *   FILE|DIR|GLOB    text (file_list.h), concatenated                        byte
 *                    token files (tokens.h), concatenated; all of one kind   none needed
 *
 * On the right is the default tokenizer. The first n - n/10 tokens are for training, the
 * last tenth for validation, unless --val-data or the names of token files (part.h) say
 * which are: then they are the last tokens. bpe:N learns its merges from the training text,
 * or the first nine tenths; char knows the characters of both. Equal arguments give equal
 * corpora everywhere: the first rank of a node opens one, which its others share
 * (corpus_share.h). */
#pragma once

#include "base/listener.h"
#include "data/stories.h"
#include "io/checksum.h"

typedef struct {
    void *tokens;        /* [n_tokens] of `width` bytes, unsigned */
    bool borrows_tokens; /* they are not freed (corpus_share.h) */
    int width;           /* 1, 2 or 4 */
    int64_t n_tokens, n_train;
    int64_t vocab;             /* every token is below it */
    zero_tokenizer *tokenizer; /* owned; NULL for token files that come without one */
    char description[192];     /* one line for the table of a run */
    bool has_validation;  /* the validation tokens are not a tenth of the training data, */
    char validation[160]; /* and this line says where they are from */
    bool has_entropy;     /* stories only */
    zero_stories_entropy entropy;
} zero_corpus;

typedef struct {
    const char *data, *validation; /* --data; --val-data, NULL: not given */
    const char *tokenizer; /* NULL: that of imported weights, or the default above */
    /* The path of the tokenizer beside the weights; "": there is none, so text is refused;
     * NULL: no weights are imported. */
    const char *imported;
    const char *imported_from; /* the path of the weights */
    uint64_t seed;             /* of stories */
    int64_t vocab;             /* the model's; 0: the data's */
    int threads;               /* of the rank, which tokenize; 0: one */
    int token_bytes;           /* --token-bytes: the files are raw tokens; 0: not given */
    size_t room;               /* bytes that the corpus may take; 0: any */
    bool shares;               /* the tokens are then copied once (corpus_share.h) */
    zero_listener listener;    /* of what is left out */
} zero_corpus_source;

/* ZERO_ERR_INVALID if the vocabulary is too small for the tokenizer, ZERO_ERR_FORMAT if a
 * token of a file is not below it, ZERO_ERR_NOMEM if the room is too small. Not
 * collective. */
zero_status zero_corpus_open(const zero_corpus_source *from, zero_corpus *corpus);
/* True if a SPEC stands for files. */
bool zero_corpus_is_files(const char *spec);
/* The vocabulary that the names alone imply, 0 for char; *why says in words where it comes
 * from. No file but a tokenizer's is opened, so files count as text, whose default is
 * byte's. ZERO_ERR_INVALID if there is no such tokenizer. */
zero_status zero_corpus_expect_vocab(const char *spec, const char *tokenizer,
                                     int64_t *vocab, const char **why);
void zero_corpus_close(zero_corpus *corpus);

/* A hash of all tokens and their texts: equal on all ranks that opened the same corpus. */
uint64_t zero_corpus_fingerprint(const zero_corpus *corpus);

/* A checksum of the data that decide training, for checkpoints: of all tokens if the last
 * tenth is for validation, else of the training tokens. */
void zero_corpus_checksum(const zero_corpus *corpus, char hex[ZERO_CHECKSUM]);

/* tokens[k] = token begin + k of the corpus, k < n; 0 <= begin, begin + n <= n_tokens. */
void zero_corpus_read(const zero_corpus *corpus, int64_t begin, int64_t n, int32_t *tokens);
