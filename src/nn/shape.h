/* shape.h - the units of GPT-2 (zero/gpt2.h), for the files that compute them. */
#pragma once

#include "nn/model.h"
#include "zero/shape.h"

/* Set a unit's name and functions, for zero_model_build(). */
void zero_embedding_unit(zero_unit *unit);
void zero_block_unit(zero_unit *unit);
void zero_head_unit(zero_unit *unit);

/* Slices that the sums of a shared model can have, at most. */
#define ZERO_MOST_SLICES 256

/* ZERO_ERR_INVALID, with the numbers and a remedy, unless the model can be shared by --tp
 * `ranks` with --tp-slices `slices`: each slice has whole heads and at least one word, and
 * slices are ranks times a power of two, or any number for one rank. If this passes, so
 * does zero_model_share(). */
ZERO_NODISCARD zero_status zero_shape_check_share(const zero_shape *shape, int ranks,
                                                  int slices);

/* N = 12 L C^2 + V C: parameters that are multiplied with every position. */
double zero_shape_multiplied(const zero_shape *shape);
/* Flops of a training step, per position: 6 N + 6 L T C. Backward is twice forward. Masked
 * attention and recomputation do not count (Narayanan et al. 2104.04473, appendix, count
 * both). */
double zero_shape_flops(const zero_shape *shape);

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

/* Tensors in the order in which their group holds them. */
enum { ZERO_WTE, ZERO_WPE, ZERO_EMBEDDING_TENSORS };
enum { ZERO_LNF_GAIN, ZERO_LNF_BIAS, ZERO_FINAL_TENSORS };
enum {
    ZERO_LN1_GAIN,
    ZERO_LN1_BIAS,
    ZERO_QKV_WEIGHT,
    ZERO_QKV_BIAS,
    ZERO_PROJ_WEIGHT,
    ZERO_PROJ_BIAS,
    ZERO_LN2_GAIN,
    ZERO_LN2_BIAS,
    ZERO_FC_WEIGHT,
    ZERO_FC_BIAS,
    ZERO_FCPROJ_WEIGHT,
    ZERO_FCPROJ_BIAS,
    ZERO_BLOCK_TENSORS
};
