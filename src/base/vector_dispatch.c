#include "base/vector.h"

#include <stddef.h>

extern const zero_vector_kernels zero_vector_kernels_base;

typedef struct {
    const zero_vector_kernels *kernels;
    bool (*runs_here)(void);
} variant;

static bool always(void)
{
    return true;
}

#ifdef ZERO_VECTOR_X86
extern const zero_vector_kernels zero_vector_kernels_v3, zero_vector_kernels_v4,
    zero_vector_kernels_bf16;

/* By feature: compilers older than these levels' names know them too. F16C came before AVX2,
 * and not all compilers can ask for it. */
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

static bool has_bf16(void)
{
    return has_v4() && __builtin_cpu_supports("avx512bf16");
}

static const variant variants[] = {
    {&zero_vector_kernels_bf16, has_bf16},
    {&zero_vector_kernels_v4, has_v4},
    {&zero_vector_kernels_v3, has_v3},
    {&zero_vector_kernels_base, always},
};
#else
static const variant variants[] = {{&zero_vector_kernels_base, always}};
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
