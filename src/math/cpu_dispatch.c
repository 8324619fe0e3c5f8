#include <stdbool.h>
#include <stddef.h>

#include "math/cpu_kernels.h"

extern const zero_cpu_kernels zero_cpu_kernels_base;

typedef struct {
    const zero_cpu_kernels *kernels;
    bool (*runs_here)(void);
} variant;

static bool always(void)
{
    return true;
}

#ifdef ZERO_KERNELS_X86
extern const zero_cpu_kernels zero_cpu_kernels_v3, zero_cpu_kernels_v4;

/* By feature: compilers older than these levels' names know them too. The rest of a level
 * (F16C, LZCNT, MOVBE) came with what is asked for. */
static bool has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static const variant variants[] = {
    {&zero_cpu_kernels_v4, has_v4},
    {&zero_cpu_kernels_v3, has_v3},
    {&zero_cpu_kernels_base, always},
};
#else
static const variant variants[] = {{&zero_cpu_kernels_base, always}};
#endif

int zero_cpu_kernels_list(const zero_cpu_kernels *list[ZERO_CPU_VARIANTS])
{
    int n = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if (variants[i].runs_here()) list[n++] = variants[i].kernels;
    return n;
}

const char *zero_cpu_kernels_name(void)
{
    const zero_cpu_kernels *list[ZERO_CPU_VARIANTS];
    zero_cpu_kernels_list(list);
    return list[0]->name;
}
