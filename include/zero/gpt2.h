/* gpt2.h - GPT-2 (Radford et al. 2019), one of the architectures of zero/shape.h, by names
 * of its own: pre-norm, learned positions, tanh GELU, tied embedding, biases everywhere.
 * Matrices are stored [in, out] under Hugging Face's names. Weights start as N(0, 0.02),
 * those that write to the residual stream as N(0, 0.02/sqrt(2L)); biases as 0, gains as 1.
 * Psi = 12 L C^2 + 13 L C + (V + T) C + 2 C (Narayanan et al. 2104.04473, eq. 2). */
#pragma once

#include "zero/shape.h"

typedef zero_shape zero_gpt2_shape;
typedef zero_preset zero_gpt2_preset_row;

#define ZERO_GPT2_LAYERS   ZERO_MOST_LAYERS
#define zero_gpt2_presets  zero_model_presets
#define zero_gpt2_preset   zero_model_preset
#define zero_gpt2_check    zero_shape_check
#define zero_gpt2_count    zero_shape_count
#define zero_gpt2_describe zero_model_build
