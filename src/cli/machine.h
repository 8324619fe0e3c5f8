/* machine.h - what a run finds: cores, memory, and the threads that a rank has of them. */
#pragma once

#include "base/binding.h"
#include "base/topology.h"
#include "train/devices.h"

/* The most that --threads takes: more than any machine's. */
#define ZERO_MOST_THREADS 4096

/* Reads the machine and chooses threads: *threads is those of --threads, or if that is 0
 * what the environment says, else 1; *from is the option or the variable that asked for
 * them, or NULL. Several are bound, for this rank among those on this machine, as
 * base/binding.h decides, until the caller closes the binding; its text says where they
 * are. If that is more than the launcher gave, the topology has it. BLAS gets one thread:
 * its calls are made by ours. ZERO_ERR_ENV if --threads asks for several and this build has
 * none, or hwloc fails. */
zero_status zero_machine_take(int local_rank, int node_ranks, int64_t *threads,
                              zero_topology *topology, const char **from,
                              zero_binding *binding);

/* The backend of --device; NULL for the host itself. ZERO_ERR_ENV if this build lacks the
 * device, like a machine without one; ZERO_ERR_INVALID if it has no device of a number that
 * was given. Needs no MPI. */
zero_status zero_machine_device(const char *device, const zero_backend **backend);

/* Which device this rank computes on. Collective over all ranks, before nodes are
 * pretended. Rank 0 prints a note if devices are shared or idle. */
zero_status zero_machine_place(const char *device, zero_comm *comm,
                               zero_device_place *place);
