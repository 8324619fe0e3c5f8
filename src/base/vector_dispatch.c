#include "base/vector.h"

#include <stddef.h>

#include "base/cpu_level.h"

extern const zero_vector_kernels zero_vector_kernels_base;

typedef struct {
    const zero_vector_kernels *kernels;
    bool (*runs_here)(void);
} variant;

#ifdef ZERO_VECTOR_X86
extern const zero_vector_kernels zero_vector_kernels_v3, zero_vector_kernels_v4,
    zero_vector_kernels_bf16;

static const variant variants[] = {
    {&zero_vector_kernels_bf16, zero_cpu_runs_bf16},
    {&zero_vector_kernels_v4, zero_cpu_runs_v4},
    {&zero_vector_kernels_v3, zero_cpu_runs_v3},
    {&zero_vector_kernels_base, zero_cpu_runs_any},
};
#else
static const variant variants[] = {{&zero_vector_kernels_base, zero_cpu_runs_any}};
#endif

int zero_vector_kernels_list(const zero_vector_kernels *list[ZERO_VECTOR_VARIANTS])
{
    int n = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if (variants[i].runs_here()) list[n++] = variants[i].kernels;
    return n;
}

const zero_vector_kernels *zero_vector_kernels_best(void)
{
    size_t i = 0;
    while (!variants[i].runs_here()) i++;
    return variants[i].kernels;
}
