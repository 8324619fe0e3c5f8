/* models.h - the models that --model knows. */
#pragma once

#include "base/fail.h"

/* A table of every preset: shape, parameters, model states without ZeRO, and its source; at
 * most 100 columns. */
ZERO_NODISCARD zero_status zero_models_show(FILE *out);
