/* cpu_loss.h - the cpu backend's loss, over a whole vocabulary and in slices, as its table
 * has it. */
#pragma once

#include "math/backend.h"

void zero_cpu_cross_entropy(const zero_math *math, const zero_cross_entropy *e);
void zero_cpu_softmax_slices(const zero_math *math, const zero_softmax *s);
void zero_cpu_softmax_loss(const zero_math *math, const zero_softmax *s);
