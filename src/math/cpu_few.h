/* cpu_few.h - products of few rows (zero_gemm.few_rows): weights are read once and not
 * packed. */
#pragma once

#include "math/backend.h"

/* False if g is no such product, or its sums do not fit the scratch: nothing is computed
 * then. Strides are given. */
bool zero_cpu_few_rows(const zero_math *math, const zero_gemm *g);
