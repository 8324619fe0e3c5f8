/* naive.h - the attention of the naive backend, which has a file of its own. */
#pragma once

#include "math/backend.h"

void zero_naive_attention(const zero_math *math, const zero_attention *s, const float *qkv,
                          float *out, float *lse, float *work);
void zero_naive_attention_backward(const zero_math *math, const zero_attention *s,
                                   const float *qkv, const float *out, const float *lse,
                                   const float *dout, float *dqkv, float *work);
