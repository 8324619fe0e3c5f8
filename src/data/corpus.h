/* corpus.h - from --data SPEC to one array of tokens.
 *
 *   stories[:SIZE]   generated (stories.h); SIZE in bytes, as in 4M or 4MiB  bpe:512
 *   self             the sources of this program                             byte
 *   FILE|DIR|GLOB    text (text_files.h), concatenated                       byte
 *                    token files (tokens.h), concatenated; all of one kind   none
 *
 * On the right the tokenizer if none is asked for. The first n - n/10 tokens are for
 * training, the last tenth for validation. A bpe:N learns its merges from the first nine
 * tenths of the text. Equal arguments give equal corpora everywhere: each rank opens its
 * own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "data/stories.h"
#include "data/tokenizer.h"

typedef struct {
    void *tokens; /* [n_tokens] of `width` bytes, unsigned; owned */
    int width;    /* 1, 2 or 4 */
    int64_t n_tokens, n_train;
    int64_t vocab;             /* every token is below it */
    zero_tokenizer *tokenizer; /* owned; NULL for token files */
    char description[192];     /* one line for the table of a run */
    bool has_entropy;          /* stories only: */
    zero_stories_entropy entropy;
} zero_corpus;

/* `tokenizer` may be NULL: the default above. `vocab` is the model's vocabulary, 0: the
 * data's own; ZERO_ERR_INVALID if it is too small for the tokenizer, ZERO_ERR_FORMAT if a
 * token file has a token that is not below it. Not collective. */
ZERO_NODISCARD zero_status zero_corpus_open(const char *spec, const char *tokenizer,
                                            uint64_t seed, int64_t vocab,
                                            zero_corpus *corpus);
/* The vocabulary that such data has as far as its names tell; *why says in words whose it is.
 * Nothing is opened: other text has byte's, and so would token files, which do not tell.
 * ZERO_ERR_INVALID if the tokenizer is none. */
ZERO_NODISCARD zero_status zero_corpus_expect_vocab(const char *spec, const char *tokenizer,
                                                    int64_t *vocab, const char **why);
void zero_corpus_close(zero_corpus *corpus);

/* A hash of all tokens: equal on all ranks that opened the same corpus. */
uint64_t zero_corpus_fingerprint(const zero_corpus *corpus);

/* tokens[k] = token begin + k of the corpus, k < n; 0 <= begin, begin + n <= n_tokens. */
void zero_corpus_read(const zero_corpus *corpus, int64_t begin, int64_t n, int32_t *tokens);
