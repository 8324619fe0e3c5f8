/* gpt2_test.h - a described GPT-2, or a failed test. */
#pragma once

#include "nn/gpt2.h"
#include "support/math_test.h"

static inline zero_model describe(const zero_gpt2_shape *shape)
{
    zero_model model;
    assert_ok(zero_gpt2_describe(shape, &model));
    return model;
}
