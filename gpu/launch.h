/* launch.h - the two words of our kernels that are not CUDA's, so that a C++ compiler can read them
 * too: nvcc makes a GPU's code of the same source, the emulator (gpu/emulated) a CPU's.
 *
 *     LAUNCH(kernel, grid, block, stream, arguments...);   kernel<<<grid, block, 0, stream>>>(...)
 *     LAUNCH((kernel<float, 4>), grid, block, stream, ...);   parentheses around a comma
 *     SHARED(float, tile, 16 * 17);                           __shared__ float tile[16 * 17];
 *
 * Shared memory is static, 48 KiB per kernel at most, and holds anything when a block begins. Its
 * arrays are aligned for float4 and for wmma's tiles. */
#pragma once

#include <cuda_runtime.h>

#ifdef __CUDACC__
/* clang-format off */
#define LAUNCH(kernel, grid, block, stream, ...) kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)
/* clang-format on */
#define SHARED(type, name, n) __shared__ __align__(32) type name[n]
#else
#include "gpu/emulated/kernel.h"
#endif
