/* stories.h - generated English-like stories whose entropy is known exactly.
 *
 * Story k is a pure function of (seed, k): element v of the stream {seed, ZERO_RNG_STORIES,
 * step 0, sample k, tensor 0} draws variable v of the grammar (stories.txt). Stories
 * are one paragraph each and end with an empty line.
 *
 * The entropy. The text satisfies two conditions, which tests/data/test_stories.c proves:
 * no text of a line equals or begins the text of another derivation of that line; and every
 * variable of the cast is named, by a form that tells its values apart, in every template
 * of some line. So there is only one way to read a story back, line by line; its
 * probability is that of its derivation, and the entropy is the grammar's:
 *
 *     H(story) = sum over variables v of E[ -log p(v | parent of v) ]
 *
 * The tokens per story are an expectation, too: no token crosses a blank, so they are the
 * sum over the blank-separated chunks of the templates. Both are computed exactly, over all
 * values of the variables, not by sampling.
 *
 * The entropy is the lowest mean loss that a model can have over whole stories. A window of
 * T tokens starts anywhere inside a story, before the model knows who and where, so a
 * measured loss stays above it, closer as T grows. */
#pragma once

#include "data/stories_grammar.h"
#include "data/tokenizer.h"

enum { ZERO_STORY_MAX = 4096 }; /* bytes; every story is shorter */

typedef struct {
    uint64_t seed;
    zero_grammar *grammar; /* owned */
} zero_stories;

typedef struct {
    double nats_per_story, tokens_per_story, nats_per_token;
} zero_stories_entropy;

zero_status zero_stories_init(zero_stories *stories, uint64_t seed);
void zero_stories_destroy(zero_stories *stories);

/* Writes story k with its empty line and without a final zero; returns its bytes. *cost is
 * -log p in nats. */
int zero_stories_tell(const zero_stories *stories, int64_t k, char text[ZERO_STORY_MAX],
                      double *cost);

/* Appends stories 0, 1, ... until they have at least `bytes`; the last one is whole. So the
 * text of a larger size begins with the text of a smaller one. */
zero_status zero_stories_fill(const zero_stories *stories, size_t bytes, zero_bytes *text,
                              int64_t *n_stories, double *cost);

/* The exact expectations, for stories cut into tokens by `tok`. */
zero_stories_entropy zero_stories_measure(const zero_stories *stories,
                                          const zero_tokenizer *tok);
