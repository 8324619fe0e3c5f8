/* blas.h - the BLAS library we are linked with: its product, its threads, its name.
 *
 * It is called through the Fortran interface, which every BLAS has. Functions that only
 * OpenBLAS, BLIS or Intel MKL offer are weak symbols. */
#pragma once

#include "math/backend.h"

/* One call of sgemm: b is fp32. m, n, k and the strides must fit the 32-bit integers of
 * BLAS. */
void zero_blas_gemm(const zero_gemm *g);

/* Asks for n >= 1 threads per process. Returns how many are in force, or 0 if this BLAS has
 * no call for it (its environment variables then decide). */
int zero_blas_set_threads(int n);

/* The threads per process in force, or 0 if this BLAS has no call for it. */
int zero_blas_threads(void);

/* Writes a name such as "OpenBLAS 0.3.21 Cooperlake" or "BLIS 0.9.0 skx" (the kernel it
 * chose for this CPU), or "BLAS" if the library has none; cut to size bytes with the final
 * zero. */
void zero_blas_name(char *name, size_t size);
