/* gpt2_test.h - a described GPT-2, or a failed test. */
#pragma once

#include "support/math_test.h"
#include "support/test.h"

#include "nn/shape.h"

static inline zero_model describe(const zero_shape *shape)
{
    zero_model model;
    assert_ok(zero_model_build(shape, &model));
    return model;
}
