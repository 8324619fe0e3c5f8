/* vector_dispatch.c - the kernels of vector_kernels.c by level. */
#include "base/vector.h"

#include "base/cpu_level.h"
#include "base/number.h"

extern const zero_vector_kernels zero_vector_kernels_base;

#ifdef ZERO_KERNEL_LEVELS
extern const zero_vector_kernels zero_vector_kernels_v3, zero_vector_kernels_v4,
    zero_vector_kernels_bf16;

static const zero_vector_kernels *const levels[] = {
    [ZERO_CPU_BASE] = &zero_vector_kernels_base,
    [ZERO_CPU_V3] = &zero_vector_kernels_v3,
    [ZERO_CPU_V4] = &zero_vector_kernels_v4,
    [ZERO_CPU_BF16] = &zero_vector_kernels_bf16,
};
#else
static const zero_vector_kernels *const levels[] = {&zero_vector_kernels_base};
#endif
#define LEVELS ZERO_COUNT(levels)

const zero_vector_kernels *zero_vector_kernels_best(void)
{
    return levels[zero_cpu_best_level(LEVELS)];
}

const zero_vector_kernels *zero_vector_kernels_at(int i)
{
    int level = zero_cpu_best_level(LEVELS) - i;
    return level >= 0 ? levels[level] : NULL;
}
