/* cpu.h - the operations of the cpu backend that have a file of their own, as its table
 * (cpu.c) has them. */
#pragma once

#include "math/backend.h"

/* cpu_gemm.c: packed (cpu_packed.h), or by BLAS. Polls between blocks, which depend on m, n
 * and k alone. */
ZERO_OPERATION(cpu, gemm);

/* cpu_norm.c: layer norm. */
ZERO_OPERATION(cpu, layernorm);
ZERO_OPERATION(cpu, layernorm_backward);

/* cpu_turn.c: rotary positions. */
ZERO_OPERATION(cpu, turn);
ZERO_OPERATION(cpu, turn_backward);

/* cpu_attention.c and cpu_attention_backward.c: polls once per block of queries. */
ZERO_OPERATION(cpu, attention_workspace);
ZERO_OPERATION(cpu, attention);
ZERO_OPERATION(cpu, attention_backward);

/* cpu_cached.c */
ZERO_OPERATION(cpu, remember);
ZERO_OPERATION(cpu, recall);

/* cpu_flat.c: flat ranges. */
ZERO_OPERATION(cpu, clear);
ZERO_OPERATION(cpu, adamw);
ZERO_OPERATION(cpu, sum_squares);
ZERO_OPERATION(cpu, exact_squares);
ZERO_OPERATION(cpu, round);
ZERO_OPERATION(cpu, accumulate);

/* cpu_loss.c: over a whole vocabulary, and in slices. */
ZERO_OPERATION(cpu, cross_entropy);
ZERO_OPERATION(cpu, softmax_slices);
ZERO_OPERATION(cpu, softmax_loss);
