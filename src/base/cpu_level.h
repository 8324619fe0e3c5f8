/* cpu_level.h - which compiled kernel levels this CPU supports.
 *
 * Kernels are compiled once per level, into tables of one type. A family of kernels lists
 * its tables from the lowest level up, as far as it has them; the best that this CPU runs
 * is levels[zero_cpu_best_level(n)], and it runs all below that as well. */
#pragma once

#include "base/fail.h"

/* Each level includes those before it. AMX is the CPU's: the system has to grant its
 * tiles. */
typedef enum {
    ZERO_CPU_BASE,
    ZERO_CPU_V3,
    ZERO_CPU_V4,
    ZERO_CPU_BF16,
    ZERO_CPU_AMX,
    ZERO_CPU_LEVELS
} zero_cpu_level;

/* True if this CPU runs the level and ZERO_CPU_LEVEL does not hide it: its value, a level's
 * name, is the highest that is used. Tests are what it is for. */
bool zero_cpu_runs(zero_cpu_level level);

/* ZERO_ERR_INVALID if ZERO_CPU_LEVEL names none, or one that this CPU does not run. */
zero_status zero_cpu_level_check(void);

/* The best of the n >= 1 lowest levels that this CPU runs. */
static inline int zero_cpu_best_level(int n)
{
    int level = n - 1;
    while (!zero_cpu_runs((zero_cpu_level)level)) level--;
    return level;
}
