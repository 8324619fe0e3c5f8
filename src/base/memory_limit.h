/* memory_limit.h - how much memory the control group of this process leaves it.
 *
 * Containers and batch systems limit memory by control groups (Linux cgroups, version 1 and
 * 2), which the machine's own numbers do not show. Limits nest: every group from ours up to
 * the root counts, and the least one decides. */
#pragma once

#include <stddef.h>

typedef struct {
    size_t limit; /* bytes; 0: there is no limit */
    size_t
        available; /* bytes left below the tightest group's limit; 0 without a limit too */
} zero_memory_limit;

/* Reads <root>/proc/self/cgroup and <root>/sys/fs/cgroup; `root` is "" except in tests.
 * What does not exist or cannot be read limits nothing. */
void zero_memory_limit_read(const char *root, zero_memory_limit *limit);
