/* cpu_norm.h - layer norm of the cpu backend, as the table has it. */
#pragma once

#include "math/backend.h"

void zero_cpu_layernorm(const zero_math *math, const zero_layernorm_args *n);
void zero_cpu_layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n);
