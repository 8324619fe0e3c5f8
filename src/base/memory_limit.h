/* memory_limit.h - how much memory the control groups of this process leave it.
 *
 * Containers and batch systems limit memory by control groups (Linux cgroups, version 1 and
 * 2), which the machine's own numbers do not show. Limits nest: every group from this
 * process's up to the root counts, and the tightest decides. */
#pragma once

#include <stddef.h>

typedef struct {
    size_t limit;     /* bytes; 0: no limit */
    size_t available; /* bytes left in the tightest group; 0 without a limit */
} zero_memory_limit;

/* Reads <root>/proc/self/cgroup and <root>/sys/fs/cgroup; `root` is "" except in tests.
 * Missing and unreadable files limit nothing. */
void zero_memory_limit_read(const char *root, zero_memory_limit *limit);

/* Bytes that this machine and the control groups leave this process now: free ones, and
 * caches that the kernel would give back. 0: unknown. */
size_t zero_memory_available(void);

/* A line of /proc/meminfo in bytes; 0 if it is missing. */
size_t zero_memory_line(const char *key);
