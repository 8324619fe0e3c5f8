/* cpu_cached.h - the cpu backend's `remember` and `recall`. */
#pragma once

#include "math/backend.h"

void zero_cpu_remember(const zero_math *math, const zero_cached *a);
void zero_cpu_recall(const zero_math *math, const zero_cached *a);
