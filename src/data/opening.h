/* opening.h - a corpus while it is made, for the files of this folder.
 *
 *     zero_opening_begin()            sizes and formats, before the first read
 *     zero_material_read() and so on  opening.read gets text or tokens
 *     zero_opening_read_validation()  and those of --val-data
 *     zero_opening_adopt()            the corpus gets the tokens */
#pragma once

#include "data/corpus.h"
#include "data/material.h"

/* The corpus of lessons: words of a model with --vocab 8 and --seq 4. */
enum { ZERO_LESSON_LETTERS = 8 };
#define ZERO_LESSON_TOKENIZER  "char"
#define ZERO_STORIES_TOKENIZER "bpe:512"

typedef struct {
    const zero_corpus_source *from;
    zero_listed data, validation; /* files, where it has any */
    zero_material read;           /* their text or tokens, until the corpus has them */
} zero_opening;

/* Call it before --data is read or made. `bytes` is what it takes in memory, as text or,
 * with are_tokens, as the corpus' tokens. ZERO_ERR_NOMEM if the room is too small for it
 * and --val-data, which must be of the same format. */
zero_status zero_opening_begin(zero_opening *o, zero_tokens_format format, uint64_t bytes,
                               bool are_tokens);

/* The corpus' tokenizer, learnt from what was read or from a file; its vocabulary is the
 * corpus'. */
zero_status zero_opening_learn(const zero_opening *o, const char *name,
                               zero_corpus *corpus);

/* The model's vocabulary may be larger than the tokenizer's: the rest is never used. */
zero_status zero_opening_widen(const zero_opening *o, zero_corpus *corpus);

zero_status zero_opening_read_validation(zero_opening *o, zero_tokens_limit limit);

/* The corpus takes the tokens, of `width` bytes each. */
void zero_opening_adopt(const zero_opening *o, zero_material *tokens, int width,
                        zero_corpus *corpus);

/* corpus_text.c: stories, lesson, self and text files. corpus_tokens.c: token files. */
zero_status zero_opening_take_text(zero_opening *o, zero_corpus *corpus);
zero_status zero_opening_take_tokens(zero_opening *o, zero_corpus *corpus);

/* "stories" and "stories:SIZE". */
bool zero_opening_is_stories(const char *spec);
