/* test_emulated_kernels.cu - small kernels that keep the emulator's rules, and some that break one. */
#include "gpu/launch.h"

#include "gpu/test_emulated_kernels.h"

static __global__ void scale(int64_t n, float factor, float *x)
{
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

void run_scale(cudaStream_t stream, int64_t n, float factor, float *x)
{
    LAUNCH(scale, (unsigned)((n + 127) / 128), 128, stream, n, factor, x);
}
