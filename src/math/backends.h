/* backends.h - the backends of this build as a list, and what they have chosen on this
 * machine.
 *
 * A new backend is a file that ends in its table (backend.h), and a row in backends.c.
 * Devices are in device.h. */
#pragma once

#include "math/backend.h"

/* ZERO_ERR_INVALID, naming the others, if this build has no backend of that name. */
zero_status zero_backend_find(const char *name, const zero_backend **found);

/* The names of all backends, the default first: number i, or NULL past the end. */
const char *zero_backend_name_at(int i);

/* Floats of workspace that attention() and attention_backward() need, for any backend:
 * about 5 T d + 145 T + 240 d, with d = C/H rounded up to 32, and T too, plus 16. */
int64_t zero_attention_workspace(const zero_attention *a);

/* The instruction set of the kernels that the cpu backend chooses on this machine: "native"
 * if the build was for one machine, else "x86-64-v4" and the like. */
const char *zero_cpu_kernels_name(void);

/* The instruction set of the kernels that multiply in fp32. */
const char *zero_cpu_fp32_name(void);

/* The same in bf16, "AMX-BF16" or "AVX512-BF16"; NULL: weights are widened, and multiplied
 * as in fp32. */
const char *zero_cpu_bf16_name(void);
