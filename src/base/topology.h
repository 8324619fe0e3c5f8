/* topology.h - the machine under this process, and the part of it that the process may use.
 *
 *     machine    all cores, all memory
 *       allowed    the part that control groups leave: containers, batch systems
 *         usable     the part of that to which this process is bound: mpirun, taskset,
 *                    numactl
 *
 * A core is a physical core; a thread is the operating system's CPU (hwloc: processing
 * unit). A core is allowed or usable if one of its threads is. Sizes are bytes; 0 means
 * unknown. Source: hwloc; /proc and /sys on Linux. */
#pragma once

#include "base/fail.h"

typedef struct {
    char cpu[128]; /* model name, empty if unknown */
    int machine_cores, machine_threads;
    int allowed_cores, allowed_threads; /* left by control groups, to all processes */
    int usable_cores, usable_threads;
    char usable_list[64]; /* of threads, by the system's numbers: "0-3" */
    int numa_nodes;
    size_t l2, l3; /* of one cache, not of all */

    size_t machine_memory;
    size_t memory_limit;     /* of the control groups; 0: none */
    size_t memory_available; /* still free, within the limit */
    size_t shm_available;    /* free space in /dev/shm, where node-shared windows live */
} zero_topology;

/* Reads the machine as it is now. Not collective: every process sees its own binding.
 * Returns ZERO_ERR_ENV if hwloc fails. */
zero_status zero_topology_read(zero_topology *topology);

/* hwloc's view of this machine, to be loaded and destroyed: all of it, also what the
 * process may not use. ZERO_ERR_ENV. */
struct hwloc_topology;
zero_status zero_topology_init(struct hwloc_topology **machine);
