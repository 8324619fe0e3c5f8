/* test_emulated_kernels.h - launchers of the kernels of test_emulated. */
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x[n] *= factor */
void run_scale(cudaStream_t stream, int64_t n, float factor, float *x);

#ifdef __cplusplus
}
#endif
