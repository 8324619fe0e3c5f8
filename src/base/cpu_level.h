/* cpu_level.h - which compiled kernel levels this CPU supports.
 *
 * Kernels are compiled once per level, into tables of one type. A family of kernels lists
 * its tables from the lowest level up, as far as it has them; the best that this CPU runs
 * is levels[zero_cpu_best_level(n)], and it runs all below that as well.
 *
 * Levels are asked for by feature: compilers older than their names know these too. The
 * other features of a level (F16C, LZCNT, MOVBE) came with them, and not all compilers can
 * ask. */
#pragma once

#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Each level includes those before it. */
typedef enum {
    ZERO_CPU_BASE,
    ZERO_CPU_V3,
    ZERO_CPU_V4,
    ZERO_CPU_BF16,
    ZERO_CPU_LEVELS
} zero_cpu_level;

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

static inline bool zero_cpu_runs(zero_cpu_level level)
{
    switch (level) {
    case ZERO_CPU_BASE: return true;
    case ZERO_CPU_V3: return zero_cpu_runs_v3();
    case ZERO_CPU_V4: return zero_cpu_runs_v4();
    case ZERO_CPU_BF16: return zero_cpu_runs_v4() && __builtin_cpu_supports("avx512bf16");
    case ZERO_CPU_LEVELS: break;
    }
    return false;
}

/* True if the CPU has tiles and multiplies them in bf16; the system has to grant their use.
 * Read from CPUID leaf 7: not all compilers that know AMX can be asked for it. */
static inline bool zero_cpu_has_amx(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (d >> 22 & 1) && (d >> 24 & 1);
}
#else
static inline bool zero_cpu_runs(zero_cpu_level level)
{
    return level == ZERO_CPU_BASE;
}

static inline bool zero_cpu_has_amx(void)
{
    return false;
}
#endif

/* The best of the n >= 1 lowest levels that this CPU runs. */
static inline int zero_cpu_best_level(int n)
{
    int level = n - 1;
    while (!zero_cpu_runs((zero_cpu_level)level)) level--;
    return level;
}
