/* stories.h - English-like stories of our own, with an entropy that is known exactly.
 *
 * Story k is a pure function of (seed, k): element v of the stream {seed, ZERO_RNG_STORIES,
 * step 0, sample k, tensor 0} draws variable v of the grammar (stories_words.h). Stories
 * are one paragraph each and end with an empty line.
 *
 * The entropy. The tables satisfy two conditions, which tests/data/test_stories.c proves: a text
 * of one line never equals, nor begins, the text of another derivation of that line; and
 * every variable of the cast is named, by a form that tells its values apart, in every
 * template of some line. A story can therefore be read back line by line in one way only,
 * so its probability is that of its derivation, and the entropy is that of the grammar:
 *
 *     H(story) = sum over variables v of E[ -log p(v | parent of v) ]
 *
 * Tokens per story are an expectation as well: no token crosses a blank, so they are the
 * sum over the blank-separated chunks of the templates. Both are computed by going through
 * all values of the variables involved, not by sampling.
 *
 * What the number means for a model: it is the floor of the mean loss over whole stories,
 * read from their beginnings. A window of T tokens starts anywhere inside a story and must
 * first find out who and where, so the floor of a measured loss lies at or above it, closer
 * to it as T grows. */
#pragma once

#include "data/stories_grammar.h"
#include "data/tokenizer.h"
#include "io/bytes.h"

enum { ZERO_STORY_MAX = 4096 }; /* bytes that any story stays below */

typedef struct {
    uint64_t seed;
    zero_grammar *grammar; /* owned */
} zero_stories;

typedef struct {
    double nats_per_story, tokens_per_story, nats_per_token;
} zero_stories_entropy;

ZERO_NODISCARD zero_status zero_stories_init(zero_stories *stories, uint64_t seed);
void zero_stories_destroy(zero_stories *stories);

/* Writes story k, not terminated, with its empty line; *cost is -log p in nats. Returns the
 * length in bytes. */
int zero_stories_tell(const zero_stories *stories, int64_t k, char text[ZERO_STORY_MAX],
                      double *cost);

/* Appends stories 0, 1, ... to the text until they fill at least `bytes`; the last one is
 * whole. A larger size therefore begins with the text of a smaller one. */
ZERO_NODISCARD zero_status zero_stories_fill(const zero_stories *stories, size_t bytes,
                                             zero_bytes *text, int64_t *n_stories,
                                             double *cost);

/* The exact expectations, for stories cut into tokens by `tok`. */
zero_stories_entropy zero_stories_measure(const zero_stories *stories,
                                          const zero_tokenizer *tok);
