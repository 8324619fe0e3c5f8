/* shape.h - a shape (zero/shape.h) in numbers: its fields, what follows from them, and the
 * units of its model. */
#pragma once

#include "io/json_tree.h"
#include "nn/architecture.h"
#include "nn/model.h"

/* The shape with the architecture's usual numbers in place of zeros. Shapes of models are
 * complete. */
zero_shape zero_shape_complete(const zero_shape *shape);

/* A number of a shape, as files and options name it. */
typedef enum { ZERO_SHAPE_WHOLE, ZERO_SHAPE_REAL, ZERO_SHAPE_FLAG } zero_shape_kind;
typedef struct {
    const char *name; /* "kv_heads" */
    zero_shape_kind kind;
    size_t offset;
    double least, most;
    int needs; /* of shapes that have this; 0: of all */
} zero_shape_field;

extern const zero_shape_field zero_shape_fields[];
enum { ZERO_SHAPE_FIELDS = 16 };

/* The number; a flag is 0 or 1. */
double zero_shape_get(const zero_shape *shape, const zero_shape_field *field);
void zero_shape_write(const zero_shape *shape, const zero_shape_field *field,
                      char text[32]);
void zero_shape_set(zero_shape *shape, const zero_shape_field *field, double value);

/* The shape without the numbers that follow from others in its architecture: as a user may
 * give it. */
zero_shape zero_shape_own(const zero_shape *shape);

/* The option's name: "kv-heads". */
void zero_shape_option(const zero_shape_field *field, char name[32]);

/* Takes the numbers of `given` that are above 0. */
void zero_shape_overlay(zero_shape *shape, const zero_shape *given);

/* Channels of a head that rotary positions turn. */
int64_t zero_shape_turned(const zero_shape *shape);

/* Angles of rotary positions, per position, of the pairs of a head: [turned / 2]. As
 * torch has them: powers in double, then fp32 (transformers, modeling_rope_utils.py, which
 * also has Llama 3's scaling). */
void zero_shape_frequencies(const zero_shape *shape, float *frequency);

/* Slices that the sums of a shared model can have, at most. */
#define ZERO_MOST_SLICES 256

/* ZERO_ERR_INVALID, with the numbers and a remedy, unless the model can be shared by --tp
 * `ranks` with --tp-slices `slices`: each slice has whole heads and at least one word, and
 * slices are ranks times a power of two, or any number for one rank. If this passes, so
 * does zero_model_share(). */
zero_status zero_shape_check_share(const zero_shape *shape, int ranks, int slices);

/* N: parameters that are multiplied with every position; of a GPT-2 12 L C^2 + V C. */
double zero_shape_multiplied(const zero_shape *shape);
/* Flops of a training step, per position: 6 N + 6 L T H D. Backward is twice forward.
 * Masked attention and recomputation do not count (Narayanan et al. 2104.04473, appendix,
 * count both). */
double zero_shape_flops(const zero_shape *shape);

/* ---- units ---- */

/* Set a unit's name and functions, for zero_model_build(). */
void zero_embedding_unit(zero_unit *unit);
void zero_block_unit(zero_unit *unit);
void zero_head_unit(zero_unit *unit);

static inline const zero_shape *zero_shape_of(const zero_unit *u)
{
    return u->shape;
}

/* The model's dropout mask `number` for this call: 0 is the embedding's, blocks have the
 * others. */
static inline zero_dropout zero_unit_mask(const zero_unit *u, const zero_call *c,
                                          int number)
{
    const zero_shape *shape = zero_shape_of(u);
    return (zero_dropout){.p = c->training ? shape->dropout : 0.0f,
                          .stream = {.seed = (uint64_t)shape->seed,
                                     .purpose = ZERO_RNG_DROPOUT,
                                     .step = (uint64_t)c->batch->step,
                                     .sample = (uint64_t)c->batch->first_sample,
                                     .tensor = (uint64_t)number}};
}

/* The table of words is an embedding's first tensor, that of positions, if there is one,
 * its second. */
enum { ZERO_WTE, ZERO_WPE };

static inline bool zero_unit_has(const zero_unit *u, int what)
{
    return (zero_shape_has(zero_shape_of(u)) & what) == what;
}

/* ---- in files ---- */

/* The shape's numbers as a JSON object: of a GPT-2 its five, of another architecture its
 * name, too. NULL without memory. */
json_t *zero_shape_facts(const zero_shape *shape);
/* The same read back, complete; `only`: the object has no other members. ZERO_ERR_FORMAT
 * names what is missing, out of range or unknown. */
zero_status zero_shape_read(const char *path, const json_t *object, bool only,
                            zero_shape *shape);
