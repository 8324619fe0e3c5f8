/* machine.h - what a run finds: cores, memory, and the threads that BLAS gets of them. */
#pragma once

#include <stdint.h>

#include "base/topology.h"
#include "train/devices.h"

/* Reads the machine and sets the BLAS threads per rank: `threads`, or if that is 0 what the
 * environment says, else 1. *blas_threads is the number in force, 0 if this BLAS cannot be told;
 * *threads_from is the option or the variable that gave it, NULL if none did. ZERO_ERR_INVALID if
 * BLAS gives another number than was asked for. */
ZERO_NODISCARD zero_status zero_machine_read(int64_t threads, zero_topology *topology,
                                             int *blas_threads, const char **threads_from);

/* Bytes that a plan may need on this rank: its share of the node's free memory and what the
 * process has taken already, because a plan counts the whole process. */
size_t zero_machine_room(const zero_topology *topology, int node_ranks);

/* The backend of --device; NULL for the host itself. ZERO_ERR_ENV if this build lacks the device,
 * like a machine without one; ZERO_ERR_INVALID if it has no device of a number that was given.
 * Needs no MPI. */
ZERO_NODISCARD zero_status zero_machine_device(const char *device,
                                               const zero_backend **backend);

/* Which device this rank computes on. Collective over all ranks, before nodes are pretended. Rank 0
 * prints a note if devices are shared or idle. */
ZERO_NODISCARD zero_status zero_machine_place(const char *device, zero_comm *comm,
                                              zero_device_place *place);
