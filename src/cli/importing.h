/* importing.h - what a run takes from the folder of --init-from besides the weights: the model's
 * shape, and the tokenizer of its texts. Each rank reads the files; nothing is collective. */
#pragma once

#include "checkpoint/hugging_face.h"
#include "data/corpus.h"
#include "train/config.h"

typedef struct {
    zero_hugging_face_found found;
    zero_gpt2_shape shape;             /* of the weights; heads 0: not known */
    char tokenizer[ZERO_STORAGE_PATH]; /* its path; "": there is none */
} zero_importing;

/* Lets the configuration take the shape, where the user gave none (zero_config_take_shape()), and
 * finds the tokenizer. `has_model`: the user gave --model. ZERO_ERR_INVALID for a --tokenizer whose
 * tokens cannot be those of the weights; errors of files are hugging_face.h's. */
ZERO_NODISCARD zero_status zero_importing_open(zero_config *config, bool has_model,
                                               zero_importing *importing);

/* ZERO_ERR_INVALID unless the corpus' tokens mean what they mean to the weights: the tokenizer that
 * was found has the same text for each. */
ZERO_NODISCARD zero_status zero_importing_compare(const zero_importing *importing,
                                                  const zero_config *config,
                                                  const zero_corpus *corpus);
