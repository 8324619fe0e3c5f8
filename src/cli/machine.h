/* machine.h - what a run finds: cores, memory, and the threads that BLAS gets of them. */
#pragma once

#include <stdint.h>

#include "base/topology.h"

/* Reads the machine, and sets BLAS threads per rank: `threads`, or for 0 what the environment
 * says, else 1. *blas_threads are those in force, 0 if this BLAS cannot be told.
 * ZERO_ERR_INVALID if it gives another number than was asked for. */
ZERO_NODISCARD zero_status zero_machine_read(int64_t threads, zero_topology *topology,
                                             int *blas_threads);

/* What is left for each rank of this node, and what this one has taken already: a plan's
 * needs count the whole process. Bytes. */
size_t zero_machine_room(const zero_topology *topology, int node_ranks);
