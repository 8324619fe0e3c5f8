/* hugging_face.h - models in the files of Hugging Face's transformers, read and written: a
 * directory with
 *
 *     model.safetensors        the tensors, or several files with an index
 *     config.json              the shape and the details of the computation
 *     generation_config.json   the token that ends a text
 *     tokenizer.json           the tokenizer (tokenizer_file.h)
 *     tokenizer_config.json    how transformers loads it
 *     special_tokens_map.json, chat_template.jinja and others
 *
 * Only the first two decide anything here; the others are kept, and written again. Names
 * and layouts of tensors are theirs (nn/architectures), after a prefix:
 *
 *     ours                          theirs
 *     wte.weight          [V, C]    transformer.wte.weight; the head is this matrix
 *     h.0.ln_1.weight     [1, C]    [C]: a vector has one dimension
 *     h.0.mlp.c_fc.weight [C, 4C]   the same: their Conv1D is [in, out], too
 *     layers.0.mlp.up_proj.weight   model.layers.0.mlp.up_proj.weight [F, C]
 *     lm_head.weight      [V, C]    without prefix; of models that are not tied
 *
 * Tensors are read and written in ranges: no rank needs memory for the model, and each
 * reads what it holds. Models are those of zero_model_build(). Nothing here is collective.
 * Source: huggingface/transformers, models/{gpt2,llama,mistral,qwen2,qwen3,
 * gpt_neox}. */
#pragma once

#include "data/tokenizer.h"
#include "engine/sampling.h"
#include "io/safetensors.h"
#include "nn/shape.h"
#include "state/weights.h"

/* An export; all borrowed. */
typedef struct {
    const zero_model *model;
    const zero_weights *weights;
    const zero_tokenizer *tokenizer; /* NULL: its files are left out */
    const json_t *kept;              /* zero_hugging_face_keep()'s; NULL: nothing */
    int64_t file_bytes; /* of tensors in a file, at most; 0: ZERO_HUGGING_FACE_FILE_BYTES */
    zero_type type;     /* of the numbers */
} zero_hugging_face_export;

#define ZERO_HUGGING_FACE_FILE_BYTES INT64_C(5000000000) /* transformers' */

/* Writes a new directory, which exists completely or not at all: names with the
 * architecture's prefix; a larger model lies in several files with an index; files of mode
 * 0644, less the umask. Kept files are written as they were, but for the numbers of shape
 * and type in config.json, which are the model's. ZERO_ERR_INVALID if the name is taken by
 * anything but an empty directory, or a number is too large for the type; ZERO_ERR_ENV,
 * naming the file, if it cannot be written. */
zero_status zero_hugging_face_write(const char *path, const zero_hugging_face_export *e);

/* Where a model lies (hugging_face_find.c). */
typedef struct {
    char folder[ZERO_STORAGE_PATH]; /* of the weights and what is beside them */
    /* The file with the tensors, or the index that names such files; "": the folder has
     * none that is read. */
    char weights[ZERO_STORAGE_FILE_PATH];
    bool is_index;
} zero_hugging_face_found;

/* Finds the model at a path: its folder, one of the hub's cache (models--NAME, of which the
 * snapshot of refs/main is taken), or the file of its weights. Nothing is opened but
 * refs/main. ZERO_ERR_IO if there is no such path; ZERO_ERR_FORMAT for a refs/main that
 * names no snapshot. */
zero_status zero_hugging_face_find(const char *path, zero_hugging_face_found *found);
/* "FOLDER/NAME" */
void zero_hugging_face_beside(const zero_hugging_face_found *found, const char *name,
                              char path[ZERO_STORAGE_FILE_PATH]);

/* The place of a tensor's elements. */
typedef struct {
    int file;
    uint64_t at; /* bytes from the start of that file; 0: nowhere */
    zero_type type;
} zero_hugging_face_place;

/* How much of a block this rank has read. A block has 16 pieces of a tensor, or more in a
 * large model, of ZERO_HUGGING_FACE_PIECE elements each. A piece that is read in parts does
 * not count. */
typedef struct {
    uint64_t sum; /* of the hashes of the pieces that were read */
    int n;        /* of them */
    bool is_read; /* some of its elements were */
} zero_hugging_face_block;

/* A run of zeros in a tensor that training does not leave zero; tensor -1: none. */
typedef struct {
    int tensor;
    int64_t begin, end;
} zero_hugging_face_zeros;

typedef struct {
    const zero_model *model; /* borrowed */
    zero_file *files;        /* [n_files] owned */
    int n_files;
    zero_hugging_face_place *places; /* [n_tensors] owned */

    /* These show what this rank has read, for hugging_face_copies.h. */
    zero_hugging_face_block *blocks;    /* [n_blocks] of all tensors in order; owned */
    int n_blocks, *first_block;         /* [n_tensors + 1] owned */
    int64_t block_len;                  /* elements */
    zero_hugging_face_zeros run, zeros; /* the last, and the first long one */
} zero_hugging_face;

/* Opens the weights at a path, as zero_hugging_face_find() finds them, for this model. They
 * must have its tensors in its shapes, as F32, F16 or BF16, plus, at most, tensors that
 * carry no information: those that the architecture ignores and a head that equals a tied
 * model's words. A config.json beside them must agree. Positions beyond the model's are
 * ignored. Values are not read yet, except to compare a head.
 *
 * ZERO_ERR_INVALID, with the options that give its shape, if it is a model of another
 * shape; ZERO_ERR_FORMAT, naming tensors and both shapes, if it is something else;
 * ZERO_ERR_UNSUPPORTED, with the command that converts them, for weights of other formats;
 * ZERO_ERR_IO. */
zero_status zero_hugging_face_open(const char *path, const zero_model *model,
                                   zero_hugging_face *file);
/* The same for tensors of one file that the caller knows: those of `table`. Nothing beside
 * the file is read. */
zero_status zero_hugging_face_open_table(const char *path, const zero_safetensors *table,
                                         const zero_model *model, zero_hugging_face *file);
void zero_hugging_face_close(zero_hugging_face *file); /* accepts a zeroed one */

/* The shape of the model there, by its config.json and its tensors. A GPT-2 needs no
 * config.json, and its heads are 0 if none says them. As zero_hugging_face_open();
 * ZERO_ERR_UNSUPPORTED for a config.json of another calculation. */
zero_status zero_hugging_face_find_shape(const char *path, zero_shape *shape);

/* Reads the files beside the weights that no computation needs (hugging_face_keep.c):
 * config.json and generation_config.json if they are of this model, tokenizer_config.json
 * and others, as texts by their names. *kept is the caller's (json_decref), or NULL if there are none. ZERO_ERR_FORMAT
 * for a file that is not UTF-8 or too long. */
zero_status zero_hugging_face_keep(const zero_hugging_face_found *found, bool has_model,
                                   json_t **kept);
/* One of them by its name, parsed: the caller's; NULL without it. */
zero_status zero_hugging_face_parse_kept(const json_t *kept, const char *name,
                                         json_t **root);
/* The tokens that end a text: "eos_token_id" of the generation_config.json among them, else
 * of the config.json, else of the tokenizer, which may be NULL. ZERO_ERR_FORMAT unless that
 * is a token or a list of at most ZERO_ENDS. */
zero_status zero_hugging_face_ends(const json_t *kept, const zero_tokenizer *tokenizer,
                                   const zero_shape *shape, zero_ends *ends);
/* *began: the positions that a kept model began with, if its table has lost some; else
 * 0. */
zero_status zero_hugging_face_lost_positions(const json_t *kept, const zero_shape *shape,
                                             int64_t *began);

/* The file's values as fp32. ZERO_ERR_FORMAT, naming tensor and element, if one is not
 * finite. */
zero_weights zero_hugging_face_weights(zero_hugging_face *file);

/* A tensor's name and dimensions, one or two, in an export. */
#define ZERO_HUGGING_FACE_NAME 96
void zero_hugging_face_name(const zero_architecture *kind, const char *name,
                            char theirs[ZERO_HUGGING_FACE_NAME]);
int zero_hugging_face_dims(const zero_tensor *t, int64_t dims[2]);

/* The shape in a config.json, complete but for a GPT-2's: what its file does not say is 0;
 * and the config.json of an export, which is the caller's. `path` is for messages. */
zero_status zero_hugging_face_read_config(const char *path, const zero_bytes *text,
                                          zero_shape *shape);
zero_status zero_hugging_face_make_config(const zero_hugging_face_export *e, json_t **root);

/* ---- for the files of this folder ---- */

#define ZERO_HUGGING_FACE_MODEL      "model.safetensors"
#define ZERO_HUGGING_FACE_INDEX      "model.safetensors.index.json"
#define ZERO_HUGGING_FACE_CONFIG     "config.json"
#define ZERO_HUGGING_FACE_GENERATION "generation_config.json"
#define ZERO_HUGGING_FACE_TOKENIZER  "tokenizer_config.json"

/* hugging_face_keep.c: the "bos_token", "eos_token" or "pad_token" that the files kept with
 * the tokenizer name; else, but for the last, the token that ends a text. -1: none. Without
 * a tokenizer a GPT-2's vocabulary as large as the released one's is taken for it. */
zero_status zero_hugging_face_special(const json_t *kept, const zero_tokenizer *tokenizer,
                                      const zero_shape *shape, const char *name,
                                      int32_t *id);

/* The names of types in safetensors, and in config.json. */
typedef struct {
    const char *file, *config;
} zero_hugging_face_type;
extern const zero_hugging_face_type zero_hugging_face_types[ZERO_TYPES];

enum { ZERO_HUGGING_FACE_PIECE = 16384 }; /* elements */

/* Reads elements [begin, end) of a tensor and forgets their values. */
zero_status zero_hugging_face_reread(zero_hugging_face *file, int tensor, int64_t begin,
                                     int64_t end);

/* hugging_face_describe.c: appends a JSON value and a new line; takes the reference. */
zero_status zero_hugging_face_print(const char *name, json_t *root, zero_bytes *out);
/* Append config.json, generation_config.json and
 * tokenizer_config.json, which needs a tokenizer or a kept file. */
zero_status zero_hugging_face_write_config(const zero_hugging_face_export *e,
                                           zero_bytes *out);
zero_status zero_hugging_face_write_generation(const zero_hugging_face_export *e,
                                               zero_bytes *out);
zero_status zero_hugging_face_write_tokenizer(const zero_hugging_face_export *e,
                                              zero_bytes *out);

/* hugging_face_keep.c: ZERO_ERR_FORMAT unless an object has texts of such files, and only
 * them. */
zero_status zero_hugging_face_check_kept(const char *path, const json_t *kept);

/* hugging_face_find.c: fails for a folder without weights that are read here, and for a
 * file of another format. */
zero_status zero_hugging_face_check_weights(const zero_hugging_face_found *found);

/* hugging_face_check.c: the name of the head's words, which has no prefix, also where the
 * model has none of its own. */
const char *zero_hugging_face_head(const zero_architecture *kind);
/* ZERO_ERR_INVALID unless both are equal; zeros in `found` are
 * unknown and equal anything. */
zero_status zero_hugging_face_compare(const char *path, const zero_shape *found,
                                      const zero_shape *wanted);
/* ZERO_ERR_FORMAT unless a config.json says what the tensors of the weights show. */
zero_status zero_hugging_face_check_config(const char *path, const char *weights,
                                           const zero_shape *said,
                                           const zero_shape *tensors);

/* Compares a table of tensors with the model. Names may have any one prefix:
 * "transformer.", "module.model.". Sets places[n_tensors], and *head, whose `at` is 0
 * without one beside the embedding. */
zero_status zero_hugging_face_match(const char *path, const zero_safetensors *table,
                                    const zero_model *model,
                                    zero_hugging_face_place *places,
                                    zero_hugging_face_place *head);
/* What the tensors of an architecture, shape->kind, show of its shape; the rest is 0.
 * ZERO_ERR_FORMAT unless they are of one. */
zero_status zero_hugging_face_shape(const char *path, const zero_safetensors *table,
                                    zero_shape *shape);
