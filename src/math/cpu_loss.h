/* cpu_loss.h - the cpu backend's loss over a vocabulary in slices, as its table has it. */
#pragma once

#include "math/backend.h"

void zero_cpu_softmax_slices(const zero_math *math, const zero_softmax *s);
void zero_cpu_softmax_loss(const zero_math *math, const zero_softmax *s);
