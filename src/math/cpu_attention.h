/* cpu_attention.h - the attention of the cpu backend; polls once per block of queries. */
#pragma once

#include "math/backend.h"

int64_t zero_cpu_attention_workspace(const zero_attention *s);
void zero_cpu_attention(const zero_math *math, const zero_attention *s, const float *qkv,
                        float *out, float *lse, float *work);
void zero_cpu_attention_backward(const zero_math *math, const zero_attention *s,
                                 const float *qkv, const float *out, const float *lse,
                                 const float *dout, float *dqkv, float *work);
