/* cpu_level.h - which of the levels that kernels are compiled for this machine runs.
 *
 * By feature: compilers older than the levels' names know them too. What else belongs to a
 * level (F16C, LZCNT, MOVBE) came with what is asked for, and not all compilers can ask. */
#pragma once

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

/* Whether the CPU has tiles and multiplies them in bf16; the system has to grant their use.
 * CPUID leaf 7: not all compilers that know AMX can be asked for it. */
static inline bool zero_cpu_has_amx(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (d >> 22 & 1) && (d >> 24 & 1);
}
#endif
