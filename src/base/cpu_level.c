#include "base/cpu_level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const variable = "ZERO_CPU_LEVEL";
static const char *const names[ZERO_CPU_LEVELS] = {
    [ZERO_CPU_BASE] = "base", [ZERO_CPU_V3] = "v3",   [ZERO_CPU_V4] = "v4",
    [ZERO_CPU_BF16] = "bf16", [ZERO_CPU_AMX] = "amx",
};

#if defined(__x86_64__)
/* Levels are asked for by feature: compilers older than their names know these too. The
 * other features of a level (F16C, LZCNT, MOVBE) came with them, and not all compilers can
 * ask. */
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

/* Tiles, and products of tiles in bf16. Read from CPUID leaf 7: not all compilers that know
 * AMX can be asked for it. */
static bool has_amx(void)
{
    unsigned a, b, c, d;
    if (!has_bf16() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (d >> 22 & 1) && (d >> 24 & 1);
}

static zero_cpu_level level_of_cpu(void)
{
    return has_amx()    ? ZERO_CPU_AMX
           : has_bf16() ? ZERO_CPU_BF16
           : has_v4()   ? ZERO_CPU_V4
           : has_v3()   ? ZERO_CPU_V3
                        : ZERO_CPU_BASE;
}
#else
static zero_cpu_level level_of_cpu(void)
{
    return ZERO_CPU_BASE;
}
#endif

static zero_cpu_level level_named(const char *name)
{
    int level = 0;
    while (level < ZERO_CPU_LEVELS && !zero_same_text(names[level], name)) level++;
    return (zero_cpu_level)level;
}

/* The highest level in use. Written once, before main(), and read by every kernel's choice:
 * too often for a look at the environment. */
static zero_cpu_level highest;

__attribute__((constructor)) static void find_level(void)
{
    const char *name = getenv(variable);
    const zero_cpu_level asked = name ? level_named(name) : ZERO_CPU_LEVELS;
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    highest = level_of_cpu();
    if (asked < highest) highest = asked;
}

bool zero_cpu_runs(zero_cpu_level level)
{
    return level <= highest;
}

zero_status zero_cpu_level_check(void)
{
    const char *name = getenv(variable);
    if (!name) return ZERO_OK;
#if defined(__x86_64__) && !defined(ZERO_KERNEL_LEVELS)
    return zero_fail(ZERO_ERR_INVALID,
                     "%s is %s, but this build has kernels for its own machine's CPU "
                     "alone; -DZERO_NATIVE=OFF has all levels",
                     variable, name);
#endif
    const zero_cpu_level asked = level_named(name);
    ZERO_INVALID_IF(
        asked == ZERO_CPU_LEVELS,
        "%s is '%s', which is no level of kernels; choose base, v3, v4, bf16 or amx",
        variable, name);
    ZERO_INVALID_IF(asked > highest, "%s is %s, but this CPU runs no more than %s",
                    variable, name, names[highest]);
    return ZERO_OK;
}
