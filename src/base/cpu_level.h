/* cpu_level.h - which of the levels that kernels are compiled for this machine runs.
 *
 * By feature: compilers older than the levels' names know them too. What else belongs to a
 * level (F16C, LZCNT, MOVBE) came with what is asked for, and not all compilers can ask. */
#pragma once

#include <stdbool.h>

static inline bool zero_cpu_runs_any(void)
{
    return true;
}

#if defined(__x86_64__)
static inline bool zero_cpu_runs_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static inline bool zero_cpu_runs_v4(void)
{
    return zero_cpu_runs_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static inline bool zero_cpu_runs_bf16(void)
{
    return zero_cpu_runs_v4() && __builtin_cpu_supports("avx512bf16");
}
#endif
