/* gpt2.h - the units of GPT-2 (zero/gpt2.h), for the files that calculate them. */
#pragma once

#include "nn/model.h"
#include "zero/gpt2.h"

/* The units' calculations; used by zero_gpt2_describe(). */
void zero_gpt2_embedding_unit(zero_unit *unit);
void zero_gpt2_block_unit(zero_unit *unit);
void zero_gpt2_head_unit(zero_unit *unit);

/* N = 12 L C^2 + V C: parameters that are multiplied with every position. */
double zero_gpt2_multiplied(const zero_gpt2_shape *shape);
/* Of a training step, per position: 6 N + 6 L T C. Backward is twice forward; what
 * is masked in attention, and recomputed, does not count (Narayanan et al. 2104.04473, appendix,
 * count both). */
double zero_gpt2_flops(const zero_gpt2_shape *shape);

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
