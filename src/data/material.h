/* material.h - the bytes that a corpus is made of: the text or the tokens of --data, and after them
 * those for validation if they are not the last tenth. */
#pragma once

#include <stdbool.h>

#include "data/tokenizer.h"
#include "data/tokens.h"
#include "io/bytes.h"

typedef struct {
    zero_bytes all;
    size_t n_train; /* bytes of --data, for training */
    bool is_split;  /* the bytes after them are for validation */
} zero_material;

/* Appends what --val-data names, which is `validation`, to data of this kind. vocab is that of
 * token files. ZERO_ERR_FORMAT for files of another kind, and for empty ones. `data` is for
 * messages. */
ZERO_NODISCARD zero_status zero_material_add_validation(zero_material *m, const char *data,
                                                        const char *validation,
                                                        zero_tokens_kind kind,
                                                        int64_t vocab);

/* The tokenizer `name`: one of ours, which learns from the text, or a path. */
ZERO_NODISCARD zero_status zero_material_learn(const zero_material *text, const char *name,
                                               int threads, zero_tokenizer *tokenizer);

/* The tokens of a text, made by threads as in encode.h. No token crosses the border between training
 * and validation. On failure *tokens holds what the caller destroys. */
ZERO_NODISCARD zero_status zero_material_encode(const zero_material *text,
                                                const zero_tokenizer *tokenizer,
                                                int threads, zero_material *tokens);
