/* comm.h - groups of ranks, and the small messages that keep them of one mind.
 *
 * A group owns its MPI communicator: our messages never meet those of a program around us.
 * Every function here is collective over its group and blocks, unless it says otherwise;
 * all ranks call the same functions in the same order.
 *
 * A group counts what it moves. Collectives on data (collective.h) count each message where
 * it is posted. Those below leave the route to MPI, so they count as control traffic what
 * the caller hands over once for each of the other size - 1 ranks, as if sent directly. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "zero/status.h"

typedef enum {
    ZERO_TRAFFIC_REDUCE_SCATTER,
    ZERO_TRAFFIC_ALL_GATHER,
    ZERO_TRAFFIC_CONTROL, /* votes, norms, broadcasts: everything in this header */
    ZERO_TRAFFIC_KINDS
} zero_traffic_kind;

typedef struct {
    int64_t bytes_sent, bytes_received;
    int64_t messages_sent, messages_received;
} zero_traffic;

struct zero_collective;

typedef struct {
    MPI_Comm mpi; /* owned; meaningless while size is 0 */
    int rank, size;
    int next_tag, tag_limit;        /* one tag per collective, from 0 below the limit */
    struct zero_collective *active; /* begun and not yet done, oldest first; borrowed */
    zero_traffic traffic[ZERO_TRAFFIC_KINDS];
} zero_comm;

/* All ranks of MPI_COMM_WORLD, as a group of our own. */
ZERO_NODISCARD zero_status zero_comm_world(zero_comm *out);

/* The ranks of `parent` that name the same color, ordered by key, then by rank in `parent`.
 * A negative color takes part in the call only: its *out is zeroed, a group of size 0. */
ZERO_NODISCARD zero_status zero_comm_split(const zero_comm *parent, int color, int key,
                                           zero_comm *out);

/* The ranks of `parent` that can share memory with this one, in the order of `parent`. */
ZERO_NODISCARD zero_status zero_comm_node(const zero_comm *parent, zero_comm *out);

/* Collective over the group; accepts a zeroed one. No collective may be in flight. */
void zero_comm_destroy(zero_comm *comm);

/* One verdict for all ranks, for work where one rank can fail alone (memory, files). If any
 * failed, every rank returns the status of the lowest that did, and zero_last_error() is
 * that rank's text behind "rank R: ", or its text alone if every rank failed (a mistake that
 * all share). Costs one integer all-reduce when all is well. */
ZERO_NODISCARD zero_status zero_agree(zero_comm *comm, zero_status mine);

/* *any = true on all ranks if `mine` is true on at least one. */
ZERO_NODISCARD zero_status zero_comm_any(zero_comm *comm, bool mine, bool *any);

/* all[r * n + i] = mine[i] of rank r, 0 <= i < n; all is [size][n]. */
ZERO_NODISCARD zero_status zero_comm_all_gather_doubles(zero_comm *comm, int n,
                                                        const double *mine, double *all);

/* Fills data[bytes] on all ranks with what it is on rank `root`. */
ZERO_NODISCARD zero_status zero_comm_broadcast(zero_comm *comm, int root, void *data,
                                               size_t bytes);

/* Returns when all ranks have come here. */
ZERO_NODISCARD zero_status zero_comm_barrier(zero_comm *comm);

/* ZERO_OK, or for an MPI code other than MPI_SUCCESS the failure of the call named `what`
 * with MPI's own text. Local. */
ZERO_NODISCARD zero_status zero_comm_check(int mpi_code, const char *what);
