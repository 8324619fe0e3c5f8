#include <stdbool.h>
#include <stddef.h>

#include "base/cpu_level.h"
#include "math/cpu_kernels.h"

extern const zero_cpu_kernels zero_cpu_kernels_base;

typedef struct {
    const zero_cpu_kernels *kernels;
    bool (*runs_here)(void);
} variant;

#ifdef ZERO_KERNELS_X86
extern const zero_cpu_kernels zero_cpu_kernels_v3, zero_cpu_kernels_v4;

static const variant variants[] = {
    {&zero_cpu_kernels_v4, zero_cpu_runs_v4},
    {&zero_cpu_kernels_v3, zero_cpu_runs_v3},
    {&zero_cpu_kernels_base, zero_cpu_runs_any},
};
#else
static const variant variants[] = {{&zero_cpu_kernels_base, zero_cpu_runs_any}};
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
