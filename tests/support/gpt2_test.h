/* gpt2_test.h - the tensors of a GPT-2. */
#pragma once

#include "support/built.h"
#include "support/math_test.h"

/* The tensors of a block, in the order in which its group holds them. */
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
