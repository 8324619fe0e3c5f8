/* cpu_loss.h - the cpu backend's loss, over a whole vocabulary and in slices, as its table has it. */
#pragma once

#include "math/backend.h"

void zero_cpu_cross_entropy(const zero_math *math, int64_t rows, int64_t V,
                            const int32_t *targets, float dscale, float *logits,
                            float *loss);
void zero_cpu_softmax_slices(const zero_math *math, const zero_softmax *s);
void zero_cpu_softmax_loss(const zero_math *math, const zero_softmax *s);
