/* blas.h - the BLAS library we are linked with: its product, its threads, its name.
 *
 * Called through the Fortran interface, which every BLAS has; what only OpenBLAS, BLIS or
 * Intel MKL offer is reached through weak symbols. */
#pragma once

#include <stddef.h>

#include "math/backend.h"

/* One call of sgemm: b is fp32. m, n, k and the strides must fit the 32-bit integers of BLAS. */
void zero_blas_gemm(const zero_gemm *g);

/* Asks for n threads per process. Returns how many are in force, or 0 if this BLAS cannot
 * be told (then its own environment variables decide). n >= 1. */
int zero_blas_set_threads(int n);

/* How many threads per process are in force, or 0 if this BLAS does not tell. */
int zero_blas_threads(void);

/* Writes a name such as "OpenBLAS 0.3.21 Cooperlake" or "BLIS 0.9.0 skx" (the kernel it chose
 * for this CPU), or "BLAS" where the library cannot say, cut to size bytes with the final
 * zero. */
void zero_blas_name(char *name, size_t size);
