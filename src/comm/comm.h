/* comm.h - groups of ranks, and the small messages that keep them of one mind.
 *
 * A group owns its MPI communicator: our messages never meet those of a program around us.
 * Every function here is collective over its group and blocks, unless it says otherwise;
 * all ranks call the same functions in the same order.
 *
 * A group counts what it moves. Collectives on data (collective.h) count each message where
 * it is posted. Those below leave the route to MPI, so they count as control traffic what
 * the caller hands over once for each of the other size - 1 ranks, as if sent directly.
 *
 * Small messages travel apart from collectives, which go on while a rank waits here. Waits
 * can be watched (watch.h: ZERO_ERR_STALLED) and what ranks begin compared (check.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "base/tree.h"
#include "comm/spec.h"
#include "zero/comm.h"
#include "zero/status.h"

#define ZERO_CONTROL       ZERO_COLLECTIVE_KINDS /* votes, norms: everything in this header */
#define ZERO_TRAFFIC_KINDS (ZERO_COLLECTIVE_KINDS + 1)

/* Seconds, of all operations of a kind. What is not exposed went on beside something else. */
typedef struct {
    double total;   /* from begin to end */
    double exposed; /* of these, waited for it and did nothing else */
} zero_duration;

struct zero_collective;
struct zero_window;
struct zero_watch;
struct zero_check;
struct zero_progress;

struct zero_comm {
    MPI_Comm mpi;     /* owned; meaningless while size is 0 */
    MPI_Comm control; /* owned; the same ranks, for small messages */
    MPI_Comm node;    /* owned; the ranks of this node */
    int rank, size;
    zero_layout layout;             /* owned */
    struct zero_window *signals;    /* owned; NULL before the first window */
    int64_t sequence;               /* of the next collective, from 0 */
    int64_t control_sequence;       /* of the next small message, from 0 */
    int tag_limit;                  /* collectives use tags below it */
    struct zero_collective *active; /* begun and not yet done, oldest first; borrowed */
    int64_t advanced;               /* grows when a step runs or a message ends */

    struct zero_watch *watch; /* owned, as are these; NULL: off */
    struct zero_check *check;
    struct zero_progress *thread;

    zero_traffic traffic[ZERO_TRAFFIC_KINDS]; /* by zero_collective_kind, and control */
    zero_duration duration[ZERO_TRAFFIC_KINDS];
    double last_poll;   /* while collectives are active */
    double patience;    /* zero_comm_be_patient(); 0: as always */
    double largest_gap; /* seconds that they were left alone at most */
};

/* All ranks of MPI_COMM_WORLD, as a group of our own. */
ZERO_NODISCARD zero_status zero_comm_world(zero_comm *out);

/* The ranks of somebody else's communicator, in its order, as a group of our own. Collective
 * over `mpi`, which is not needed afterwards. ZERO_ERR_INVALID for MPI_COMM_NULL and for an
 * intercommunicator. */
ZERO_NODISCARD zero_status zero_comm_from(MPI_Comm mpi, zero_comm *out);

/* The ranks of `parent` that name the same color, ordered by key, then by rank in `parent`.
 * A negative color takes part in the call only: its *out is zeroed, a group of size 0. */
ZERO_NODISCARD zero_status zero_comm_split(const zero_comm *parent, int color, int key,
                                           zero_comm *out);

/* Declares which ranks share a node: ranks with equal ids[rank] do. Lets one machine stand for
 * several nodes. ZERO_ERR_INVALID if ranks of different nodes shall be one node's, or if the
 * group has windows already. */
ZERO_NODISCARD zero_status zero_comm_pretend_nodes(zero_comm *comm, const int *ids);

/* The same for n_nodes blocks of ranks, as equal as they can be: --fake-nodes.
 * ZERO_ERR_INVALID if there are fewer ranks. */
ZERO_NODISCARD zero_status zero_comm_pretend_blocks(zero_comm *comm, int n_nodes);

/* Collective over the group; accepts a zeroed one. No collective may be in flight. Ends its
 * watchdog, check and thread, too; a program that wants to know how that went ends them
 * itself before. */
void zero_comm_destroy(zero_comm *comm);

/* One verdict for all ranks, for work where one rank can fail alone (memory, files). If any
 * failed, every rank returns the status of the lowest that did, and zero_last_error() is
 * that rank's text behind "rank R: ", or its text alone if every rank failed (a mistake that
 * all share). Costs one integer all-reduce when all is well. A rank with ZERO_ERR_STALLED
 * keeps it and asks nobody. */
ZERO_NODISCARD zero_status zero_agree(zero_comm *comm, zero_status mine);

/* *any = true on all ranks if `mine` is true on at least one. */
ZERO_NODISCARD zero_status zero_comm_any(zero_comm *comm, bool mine, bool *any);

/* *most = the largest of what ranks have. */
ZERO_NODISCARD zero_status zero_comm_most(zero_comm *comm, int64_t mine, int64_t *most);

/* words[n] = their bitwise or over the ranks, in place; n >= 0, the same on all ranks. */
ZERO_NODISCARD zero_status zero_comm_or(zero_comm *comm, int64_t n, uint64_t *words);

/* spans[n] = what the ranks' spans of the same index are together, in place; n >= 0, the same
 * on all ranks. Those of one index are of one tree and adjoin in the order of ranks, empty
 * ones left out; ZERO_ERR_INVALID everywhere if they do not, and then all are lost. */
ZERO_NODISCARD zero_status zero_comm_merge_spans(zero_comm *comm, int n,
                                                 zero_tree_span *spans);

/* all[r * n + i] = mine[i] of rank r, 0 <= i < n; all is [size][n]. */
ZERO_NODISCARD zero_status zero_comm_all_gather_doubles(zero_comm *comm, int n,
                                                        const double *mine, double *all);

/* Fills data[bytes] on all ranks with what it is on rank `root`. */
ZERO_NODISCARD zero_status zero_comm_broadcast(zero_comm *comm, int root, void *data,
                                               size_t bytes);

/* Until the next call waits may take `factor` >= 1 times as long before the watchdog, or a
 * SIGTERM, ends them: ranks that work on files are waited for longer than for messages. Local,
 * and the same on all ranks. */
void zero_comm_be_patient(zero_comm *comm, double factor);
#define ZERO_FILE_PATIENCE 10.0 /* the factor where a rank reads or writes files */

/* Returns when all ranks have come here. */
ZERO_NODISCARD zero_status zero_comm_barrier(zero_comm *comm);

/* The same, for what ends with the group: errors name it so. */
ZERO_NODISCARD zero_status zero_comm_finish(zero_comm *comm);

/* ZERO_OK, or for an MPI code other than MPI_SUCCESS the failure of the call named `what`
 * with MPI's own text. Local. */
ZERO_NODISCARD zero_status zero_comm_check(int mpi_code, const char *what);
