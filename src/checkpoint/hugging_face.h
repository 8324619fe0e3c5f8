/* hugging_face.h - GPT-2 in the files of Hugging Face's transformers, read and written: a directory
 * with
 *
 *     model.safetensors        the tensors
 *     config.json              the shape and the details of the computation
 *     generation_config.json   the token that ends a text
 *     tokenizer.json           the tokenizer (tokenizer_file.h)
 *     tokenizer_config.json    how transformers loads it
 *
 * Only the first two are read here. The tensors:
 *
 *     ours                          theirs, with or without "transformer." before it
 *     wte.weight        [V, C]      the same; the head is this matrix, stored once
 *     h.0.ln_1.weight   [1, C]      [C]: a vector has one dimension
 *     h.0.mlp.c_fc.weight [C, 4C]   the same: their Conv1D is [in, out], too
 *
 * Tensors are read and written in ranges: no rank needs memory for the model, and each reads what
 * it holds. Models are those of zero_gpt2_describe(). Nothing here is collective.
 * Source: huggingface/transformers, modeling_gpt2.py, configuration_gpt2.py. */
#pragma once

#include "data/tokenizer.h"
#include "engine/weights.h"
#include "io/safetensors.h"
#include "nn/gpt2.h"

/* Writes a new directory, which exists completely or not at all: fp32, names with "transformer.",
 * without the head; files of mode 0644, less the umask. A tokenizer of NULL leaves out its files.
 * ZERO_ERR_INVALID if the name is taken by anything but an empty directory;
 * ZERO_ERR_ENV, naming the file, if it cannot be written. */
ZERO_NODISCARD zero_status zero_hugging_face_write(const char *path,
                                                   const zero_model *model,
                                                   const zero_weights *weights,
                                                   const zero_tokenizer *tokenizer);

/* The place of a tensor's elements in the file. */
typedef struct {
    uint64_t at; /* bytes from the start of the file */
    zero_type type;
} zero_hugging_face_place;

typedef struct {
    const zero_model *model; /* borrowed */
    zero_file file;
    zero_hugging_face_place *places; /* [n_tensors] owned */
} zero_hugging_face;

/* Opens a safetensors file, or the model.safetensors of a directory, for this model. The file
 * must hold its tensors in its shapes, as F32, F16 or BF16, plus, at most, tensors that carry no
 * information: masks (attn.bias, attn.masked_bias) and a head that equals the embedding. A
 * config.json beside it must agree. Positions beyond the model's are ignored. Values are not read
 * yet, except to compare a head.
 *
 * ZERO_ERR_INVALID, with the options that give its shape, if it is a GPT-2 of another shape;
 * ZERO_ERR_FORMAT, naming tensors and both shapes, if it is something else; ZERO_ERR_IO. */
ZERO_NODISCARD zero_status zero_hugging_face_open(const char *path, const zero_model *model,
                                                  zero_hugging_face *file);
void zero_hugging_face_close(zero_hugging_face *file); /* accepts a zeroed one */

/* The shape of the model there: that of its tensors, with the heads of the config.json beside
 * them. Numbers that are not known are 0: the heads without a config.json, all of it if the tensors
 * are not a GPT-2's. ZERO_ERR_IO, ZERO_ERR_FORMAT; ZERO_ERR_UNSUPPORTED for a config.json of
 * another calculation. */
ZERO_NODISCARD zero_status zero_hugging_face_find_shape(const char *path,
                                                        zero_gpt2_shape *shape);

/* The file's values as fp32. ZERO_ERR_FORMAT, naming tensor and element, if one is not finite. */
zero_weights zero_hugging_face_weights(zero_hugging_face *file);

/* A hash of the tensors' places and first elements: enough to find that ranks were given
 * different files. */
ZERO_NODISCARD zero_status zero_hugging_face_fingerprint(const zero_hugging_face *file,
                                                         uint64_t *hash);

/* ---- for the files of this folder ---- */

#define ZERO_HUGGING_FACE_PREFIX     "transformer."
#define ZERO_HUGGING_FACE_MODEL      "model.safetensors"
#define ZERO_HUGGING_FACE_CONFIG     "config.json"
#define ZERO_HUGGING_FACE_GENERATION "generation_config.json"
#define ZERO_HUGGING_FACE_TOKENIZER  "tokenizer_config.json"

/* hugging_face_describe.c: append config.json, generation_config.json and tokenizer_config.json.
 * The tokenizer may be NULL for the first two. */
ZERO_NODISCARD zero_status zero_hugging_face_write_config(const zero_gpt2_shape *shape,
                                                          const zero_tokenizer *tokenizer,
                                                          zero_bytes *out);
ZERO_NODISCARD zero_status zero_hugging_face_write_generation(
    const zero_gpt2_shape *shape, const zero_tokenizer *tokenizer, zero_bytes *out);
ZERO_NODISCARD zero_status zero_hugging_face_write_tokenizer(
    const zero_gpt2_shape *shape, const zero_tokenizer *tokenizer, zero_bytes *out);

/* hugging_face_config.c: the shape in a config.json. `path` is for messages. */
ZERO_NODISCARD zero_status zero_hugging_face_read_config(const char *path,
                                                         const zero_bytes *text,
                                                         zero_gpt2_shape *shape);
/* ZERO_ERR_INVALID unless both are equal; zeros in `found` are unknown and equal anything. */
ZERO_NODISCARD zero_status zero_hugging_face_compare(const char *path,
                                                     const zero_gpt2_shape *found,
                                                     const zero_gpt2_shape *wanted);

/* hugging_face_check.c: compares a table of tensors with the model. Sets places[n_tensors], and
 * *head, whose `at` is 0 without one. */
ZERO_NODISCARD zero_status zero_hugging_face_match(const char *path,
                                                   const zero_safetensors *table,
                                                   const zero_model *model,
                                                   zero_hugging_face_place *places,
                                                   zero_hugging_face_place *head);
/* The shape that the table's tensors have if they are a GPT-2's. Unknown numbers, such as heads,
 * are 0. */
zero_gpt2_shape zero_hugging_face_shape(const zero_safetensors *table);
