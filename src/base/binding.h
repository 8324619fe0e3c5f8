/* binding.h - the cores that a rank's threads keep.
 *
 * A core for each thread, of those that the launcher gave the rank:
 *
 *     the launcher gave the rank              its threads are
 *     at least as many cores as it has        each on a core of its own
 *     threads
 *     fewer                                   anywhere among them, and a run warns
 *     fewer, because Open MPI was not told    as if it had given all
 *     how to bind
 *     all of a machine of several NUMA        each on a core of one NUMA node, if it has
 *                                             the cores:
 *     nodes                                   rank i of n on node i * nodes / n
 *
 * A rank claims its cores (claim.h), so that ranks and runs on one machine keep different
 * ones, in containers, too. What others have claimed is left to them; if too little
 * remains, nothing is bound within a NUMA node. Where claims cannot be seen, nothing is
 * bound at all. If OpenMP's own variables bind threads (OMP_PROC_BIND, OMP_PLACES,
 * GOMP_CPU_AFFINITY), or ranks have more threads than there are cores, nothing is bound.
 * Nothing here is collective. */
#pragma once

#include "base/fail.h"

typedef struct {
    void *machine, *set; /* hwloc's; NULL: closed */
    int claims;          /* a descriptor (claim.h), or -1 */
    int cores;      /* in the set: one for each thread; 0: a thread may use all of it */
    bool binds;     /* false: everything stays as it is */
    char text[128]; /* "each on a core of its own: 0-3", of the system's numbers */
} zero_binding;

/* Claims cores for `threads` threads of rank local_rank of the node_ranks ranks on this
 * machine, until the binding is closed. ZERO_ERR_ENV if hwloc fails. */
zero_status zero_binding_open(zero_binding *b, int threads, int local_rank, int node_ranks);

/* Binds the calling thread, number `index` of the rank, as was decided. True if that
 * worked, or if there is nothing to do. Threads may call this at the same time. */
bool zero_binding_take(const zero_binding *b, int index);

void zero_binding_close(zero_binding *b);
