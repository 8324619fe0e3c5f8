/* binding.h - the cores that a rank's threads keep.
 *
 * What mpirun, srun or taskset decided stays. Where they decided nothing a rank keeps to one NUMA
 * node, next to its memory, and the system moves threads within it: other jobs may run there, too.
 *
 *     the launcher gave the rank             its threads are
 *     as many cores as it has threads        each on a core of its own
 *     more                                   anywhere among them
 *     fewer                                  the same, and a run warns
 *     all of a machine of several NUMA       on one NUMA node, if it has the cores: rank i of n on
 *     nodes                                  node i * nodes / n
 *
 * If OpenMP's own variables bind threads (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY), or ranks
 * have more threads than there are cores, nothing is bound. Nothing here is collective. */
#pragma once

#include <stdbool.h>

#include "zero/status.h"

typedef struct {
    void *machine, *set; /* hwloc's; NULL: closed */
    int cores;      /* in the set: one for each thread; 0: a thread may use all of it */
    bool binds;     /* false: everything stays as it is */
    char text[128]; /* "each on a core of its own: 0-3", of the system's numbers */
} zero_binding;

/* One of node_ranks ranks on this machine, the local_rank-th, has so many threads. ZERO_ERR_ENV if
 * hwloc fails. */
ZERO_NODISCARD zero_status zero_binding_open(zero_binding *b, int threads, int local_rank,
                                             int node_ranks);

/* Binds the calling thread, number `index` of the rank, as was decided. True if that worked, or if
 * there is nothing to do. Threads may call this at the same time. */
bool zero_binding_take(const zero_binding *b, int index);

void zero_binding_close(zero_binding *b);
