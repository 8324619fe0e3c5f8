/* cpu_dispatch.c - the kernels of cpu_kernels.c by level. */

#include "base/cpu_level.h"
#include "math/cpu_kernels.h"

extern const zero_cpu_kernels zero_cpu_kernels_base;

#ifdef ZERO_KERNEL_LEVELS
extern const zero_cpu_kernels zero_cpu_kernels_v3, zero_cpu_kernels_v4;

static const zero_cpu_kernels *const levels[] = {
    [ZERO_CPU_BASE] = &zero_cpu_kernels_base,
    [ZERO_CPU_V3] = &zero_cpu_kernels_v3,
    [ZERO_CPU_V4] = &zero_cpu_kernels_v4,
};
#else
static const zero_cpu_kernels *const levels[] = {&zero_cpu_kernels_base};
#endif
#define LEVELS ZERO_COUNT(levels)

const zero_cpu_kernels *zero_cpu_kernels_at(int i)
{
    int level = zero_cpu_best_level(LEVELS) - i;
    return level >= 0 ? levels[level] : NULL;
}
