/* gpt2_test.h - a described GPT-2, or a failed test. */
#pragma once

#include "nn/shape.h"
#include "support/math_test.h"

static inline zero_model describe(const zero_shape *shape)
{
    zero_model model;
    assert_ok(zero_model_build(shape, &model));
    return model;
}

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
