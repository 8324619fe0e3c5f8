/* importing.h - what a run takes from the folder of --init-from besides the weights: the
 * model's shape, the tokenizer of its texts, and what checkpoints keep of it. A checkpoint
 * that is resumed gives the same (resumed_options.h). Each rank reads the files; nothing is
 * collective unless it says so. */
#pragma once

#include "checkpoint/hugging_face.h"
#include "comm/comm.h"
#include "data/corpus.h"
#include "train/config.h"

typedef struct {
    zero_hugging_face_found found;
    zero_shape shape;                  /* of the weights; heads 0: not known */
    char tokenizer[ZERO_STORAGE_PATH]; /* its path; "": there is none */

    /* Rank 0's, for checkpoints; owned. */
    json_t *kept;   /* zero_hugging_face_keep()'s; NULL: nothing */
    char note[200]; /* what the run does otherwise than the model's files say, in words */
} zero_importing;

/* Lets the configuration take the shape, where the user gave none
 * (zero_config_take_shape()), and finds the tokenizer. `has_model`: the user gave --model.
 * ZERO_ERR_INVALID for a --tokenizer whose tokens cannot be those of the weights, and for a
 * checkpoint; errors of files are hugging_face.h's. */
zero_status zero_importing_open(zero_config *config, bool has_model,
                                zero_importing *importing);

/* ZERO_ERR_INVALID unless the corpus' tokens mean what they mean to the weights: the
 * tokenizer that was found has the same text for each. */
zero_status zero_importing_compare(const zero_importing *importing,
                                   const zero_config *config, const zero_corpus *corpus);

/* Reads what checkpoints keep of an imported model, or of a --tokenizer that is a path; for
 * rank 0, which writes them. */
zero_status zero_importing_keep(zero_importing *importing, const zero_config *config,
                                const zero_corpus *corpus, const zero_shape *model);
/* The tokens that end a text, by what is kept of a model, which rank 0 alone may have, and
 * its tokenizer: rank 0's on all ranks, so that all end a text after the same token.
 * Collective. */
zero_status zero_importing_find_ends(zero_comm *world, const json_t *kept,
                                     const zero_tokenizer *tokenizer,
                                     const zero_shape *shape, zero_ends *ends);

/* Ranks that read files of their own must have read the same model. Collective:
 * ZERO_ERR_FORMAT names the rank that has another shape, or other weights
 * (hugging_face_copies.h), once they were read. Zeros that training does not leave are a
 * warning of rank 0. */
zero_status zero_importing_compare_shapes(zero_comm *world, const char *path,
                                          const zero_shape *shape);
zero_status zero_importing_check_weights(zero_comm *world, zero_hugging_face *file);

void zero_importing_close(zero_importing *importing); /* accepts a zeroed one */
