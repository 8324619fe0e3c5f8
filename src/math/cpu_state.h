/* cpu_state.h - what a call of the cpu backend works with: the kernels that open() chose,
 * and how much it does between two polls. */
#pragma once

#include "math/cpu_kernels.h"
#include "math/cpu_panel.h"

/* Elements between two polls: well below a block of a product; a subtree of base/tree.h. */
#define ZERO_CPU_PIECE 65536

/* Places in the state of zero_math. */
enum { ZERO_CPU_KERNELS, ZERO_CPU_FP32_PRODUCTS, ZERO_CPU_BF16_PRODUCTS, ZERO_CPU_PANELS };
_Static_assert(ZERO_CPU_PANELS < ZERO_MATH_STATE, "backend.h");

static inline const zero_cpu_kernels *zero_cpu_kernels_of(const zero_math *math)
{
    return (const zero_cpu_kernels *)math->state[ZERO_CPU_KERNELS];
}

/* Kernels for products in fp32; NULL: BLAS multiplies. */
static inline const zero_packed_kernels *zero_cpu_fp32_of(const zero_math *math)
{
    return (const zero_packed_kernels *)math->state[ZERO_CPU_FP32_PRODUCTS];
}

/* Kernels for products of bf16 factors; NULL: they are done as in fp32. */
static inline const zero_packed_kernels *zero_cpu_bf16_of(const zero_math *math)
{
    return (const zero_packed_kernels *)math->state[ZERO_CPU_BF16_PRODUCTS];
}

/* Kernels for attention in fp32. */
static inline const zero_panel_kernels *zero_cpu_panels_of(const zero_math *math)
{
    return (const zero_panel_kernels *)math->state[ZERO_CPU_PANELS];
}
