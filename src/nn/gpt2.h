/* gpt2.h - the units of GPT-2 (zero/gpt2.h), for the files that calculate them. */
#pragma once

#include "nn/model.h"
#include "zero/gpt2.h"

/* The units' calculations; used by zero_gpt2_describe(). */
void zero_gpt2_embedding_unit(zero_unit *unit);
void zero_gpt2_block_unit(zero_unit *unit);
void zero_gpt2_head_unit(zero_unit *unit);

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
