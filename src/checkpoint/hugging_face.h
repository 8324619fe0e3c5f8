/* hugging_face.h - GPT-2 as Hugging Face's transformers keeps it, from and to a directory of
 *
 *     model.safetensors   the tensors
 *     config.json         the shape, and what else decides what is computed
 *
 *     ours                          theirs, behind "transformer." or alone
 *     wte.weight        [V, C]      the same; the head is this matrix, stored once
 *     h.0.ln_1.weight   [1, C]      [C]: a vector has one dimension
 *     h.0.mlp.c_fc.weight [C, 4C]   the same: their Conv1D is [in, out], too
 *
 * Both ways go tensor by tensor and range by range: no rank needs memory for the model, and
 * each reads what it holds. Models are those of zero_gpt2_describe(). Nothing here is
 * collective.
 * Source: huggingface/transformers, modeling_gpt2.py, configuration_gpt2.py. */
#pragma once

#include "engine/weights.h"
#include "io/safetensors.h"
#include "nn/gpt2.h"

/* Writes a new directory, which is there completely or not at all: fp32, names behind
 * "transformer.", the head left out. ZERO_ERR_INVALID if there is something of that name but
 * an empty directory; ZERO_ERR_ENV if it cannot be written, naming the file. */
ZERO_NODISCARD zero_status zero_hugging_face_write(const char *path,
                                                   const zero_model *model,
                                                   const zero_weights *weights);

/* Of a tensor of the model, where in the file its elements are. */
typedef struct {
    uint64_t at; /* bytes from the beginning of the file */
    zero_type type;
} zero_hugging_face_place;

typedef struct {
    const zero_model *model; /* borrowed */
    zero_file file;
    zero_hugging_face_place *places; /* [n_tensors] owned */
} zero_hugging_face;

/* Opens a safetensors file, or the model.safetensors of a directory, for this model. The file
 * must hold its tensors in its shapes, as F32, F16 or BF16, and nothing else but what adds
 * nothing: masks (attn.bias, attn.masked_bias) and a head that is the embedding once more. A
 * config.json beside it must agree. Nothing is read of the values yet, but to compare a head.
 *
 * ZERO_ERR_INVALID if it is a GPT-2 of another shape, saying which options give that one;
 * ZERO_ERR_FORMAT, naming tensors and both shapes, if it is something else; ZERO_ERR_IO. */
ZERO_NODISCARD zero_status zero_hugging_face_open(const char *path, const zero_model *model,
                                                  zero_hugging_face *file);
void zero_hugging_face_close(zero_hugging_face *file); /* accepts a zeroed one */

/* Its values as fp32. ZERO_ERR_FORMAT, naming tensor and element, where one is not finite. */
zero_weights zero_hugging_face_weights(zero_hugging_face *file);

/* A hash of where its tensors are and of the first elements of each: enough to tell that ranks
 * were given two files. */
ZERO_NODISCARD zero_status zero_hugging_face_fingerprint(const zero_hugging_face *file,
                                                         uint64_t *hash);

/* ---- for the files of this folder ---- */

#define ZERO_HUGGING_FACE_PREFIX "transformer."
#define ZERO_HUGGING_FACE_MODEL  "model.safetensors"
#define ZERO_HUGGING_FACE_CONFIG "config.json"

/* hugging_face_config.c: the text of config.json for a shape; and what one says against the
 * shape of `model`. `path` is for messages. */
ZERO_NODISCARD zero_status zero_hugging_face_write_config(const zero_gpt2_shape *shape,
                                                          zero_bytes *out);
ZERO_NODISCARD zero_status zero_hugging_face_read_config(const char *path,
                                                         const zero_bytes *text,
                                                         zero_gpt2_shape *shape);
/* ZERO_ERR_INVALID unless both are the same; `found` as far as it is known: 0 is not. */
ZERO_NODISCARD zero_status zero_hugging_face_compare(const char *path,
                                                     const zero_gpt2_shape *found,
                                                     const zero_gpt2_shape *wanted);

/* hugging_face_check.c: a table of tensors against the model; places[n_tensors] are set, and
 * *head, whose `at` is 0 if there is none. */
ZERO_NODISCARD zero_status zero_hugging_face_match(const char *path,
                                                   const zero_safetensors *table,
                                                   const zero_model *model,
                                                   zero_hugging_face_place *places,
                                                   zero_hugging_face_place *head);
/* The shape that the table's tensors have, if they are a GPT-2's; what is unknown, as heads
 * always, is 0. */
zero_gpt2_shape zero_hugging_face_shape(const zero_safetensors *table);
