/* topology.h - the machine under this process, and the part of it that the process may use.
 *
 *     machine    all cores, all memory
 *       allowed    what control groups leave of it: containers, batch systems
 *         usable     and what this process is bound to: mpirun, taskset, numactl
 *
 * A core is a physical core; a thread is what the operating system calls a CPU (hwloc:
 * processing unit). A core is allowed or usable if one of its threads is. Sizes are bytes; 0
 * means that the system does not say.
 * Source: hwloc; /proc and /sys on Linux. */
#pragma once

#include <stddef.h>

#include "zero/status.h"

typedef struct {
    char cpu[128]; /* model name, empty if unknown */
    int machine_cores, machine_threads;
    int allowed_cores, allowed_threads; /* left by control groups, to all processes */
    int usable_cores, usable_threads;
    int numa_nodes;
    size_t l2, l3; /* one cache of its level, not their sum */

    size_t machine_memory;
    size_t memory_limit;     /* the control groups'; 0: none */
    size_t memory_available; /* what can still be taken, within the limit */
    size_t shm_available;    /* free space in /dev/shm, where node-shared windows live */
} zero_topology;

/* Reads the machine as it is now. Not collective: every process sees its own binding.
 * Returns ZERO_ERR_ENV if hwloc cannot. */
ZERO_NODISCARD zero_status zero_topology_read(zero_topology *topology);
