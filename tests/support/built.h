/* built.h - models that must be. */
#pragma once

#include "support/test.h"

#include "nn/shape.h"

static inline zero_model built(const zero_shape *shape)
{
    zero_model model;
    assert_ok(zero_model_build(shape, &model));
    return model;
}

static inline zero_model built_preset(const char *name)
{
    zero_shape shape;
    assert_ok(zero_model_preset(name, &shape));
    return built(&shape);
}
