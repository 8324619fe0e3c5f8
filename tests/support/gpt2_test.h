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
