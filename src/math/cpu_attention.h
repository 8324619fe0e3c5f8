/* cpu_attention.h - the attention of the cpu backend; polls once per block of queries. */
#pragma once

#include "math/backend.h"

int64_t zero_cpu_attention_workspace(const zero_attention *a);
void zero_cpu_attention(const zero_math *math, const zero_attention *a);
void zero_cpu_attention_backward(const zero_math *math, const zero_attention *a);
