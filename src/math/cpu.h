/* cpu.h - what the files of the cpu backend share; nothing above src/math includes it. */
#pragma once

#include "math/backend.h"
#include "math/cpu_kernels.h"

/* One tile of a product is at most 2 * 512 * 1024 * 512 = 0.5 Gflop: a few milliseconds are
 * the longest time that communication waits for a poll. What that costs: bench/README.md. */
#define ZERO_TILE_M 512
#define ZERO_TILE_N 1024
#define ZERO_TILE_K 512

static inline const zero_cpu_kernels *zero_cpu_chosen(const zero_math *math)
{
    return (const zero_cpu_kernels *)math->state;
}

/* The gemm of the table; polls between tiles. Tiles depend on nothing but m, n and k. */
void zero_cpu_gemm(const zero_math *math, const zero_gemm *g);

/* The attention of the table; polls once per block of queries. */
void zero_cpu_attention(const zero_math *math, const zero_attention *s, const float *qkv,
                        float *out, float *lse, float *work);
void zero_cpu_attention_backward(const zero_math *math, const zero_attention *s,
                                 const float *qkv, const float *out, const float *lse,
                                 const float *dout, float *dqkv, float *work);

/* The backend's zero_attention_workspace(). */
int64_t zero_cpu_attention_workspace(const zero_attention *s);
