/* cpu_gemm.h - the matrix product of the cpu backend: packed (cpu_packed.h), or by BLAS. */
#pragma once

#include "math/backend.h"

/* The gemm of the table; polls between blocks, which depend on m, n and k alone. */
void zero_cpu_gemm(const zero_math *math, const zero_gemm *g);
