/* comm.h - groups of ranks: how they are made, divided into nodes, and ended.
 *
 * group.h has the structs, control.h the small messages, collective.h the collectives on
 * data. Every function here is collective and blocks, unless it says otherwise. */
#pragma once

#include "comm/control.h"

/* All ranks of MPI_COMM_WORLD, as a group of our own. */
zero_status zero_comm_world(zero_comm *out);

/* The ranks of a program's communicator, in its order, as a group of our own. Collective
 * over `mpi`, which is not needed afterwards. ZERO_ERR_INVALID for MPI_COMM_NULL and for an
 * intercommunicator. */
zero_status zero_comm_from(MPI_Comm mpi, zero_comm *out);

/* Makes a new communicator of MPI's a group of our own: *out owns it, or it is freed. */
zero_status zero_comm_adopt(MPI_Comm mpi, const char *name, zero_comm *out);

/* The ranks of `parent` that name the same color, ordered by key, then by rank in `parent`.
 * A rank with a negative color takes part in the call only: its *out is zeroed, a group of
 * size 0. */
zero_status zero_comm_split(const zero_comm *parent, int color, int key, zero_comm *out);

/* Declares which ranks share a node: those with equal ids[rank]. Lets one machine stand for
 * several nodes. ZERO_ERR_INVALID if this joins ranks that run on different nodes, or if
 * the group has windows or is divided already. */
zero_status zero_comm_pretend_nodes(zero_comm *comm, const int *ids);

/* The same for n_nodes blocks of ranks, as equal as possible: --fake-nodes.
 * ZERO_ERR_INVALID if there are fewer ranks. */
zero_status zero_comm_pretend_blocks(zero_comm *comm, int n_nodes);

/* Ends the group's progress thread, check and watchdog, whichever run: the one place where
 * they end. Accepts a zeroed group. */
zero_status zero_comm_stop_helpers(zero_comm *comm);

/* Frees the groups that it was divided into, if any (divide.h); no helper runs.
 * Collective. */
void zero_comm_destroy_parts(zero_comm *comm);

/* Ends the helpers, then the group and its parts; accepts a zeroed one. No collective may
 * be in flight. If a helper fails to stop, the group is left to the abort that follows. */
void zero_comm_destroy(zero_comm *comm);

/* ---- groups of programs (zero/comm.h) ---- */

/* ZERO_ERR_INVALID, with the reason, if the library cannot work on the group: it is NULL or
 * closed, or MPI is not up. Local. */
zero_status zero_comm_check(const zero_comm *comm);

/* One more user of the group, and one less: a closed group ends with its last user, so the
 * order in which a program closes things does not matter. The second is collective then. */
void zero_comm_keep(zero_comm *comm);
void zero_comm_release(zero_comm *comm);

/* True on rank 0, which prints and writes for all. Local. */
static inline bool zero_comm_is_root(const zero_comm *comm)
{
    return comm->rank == 0;
}
