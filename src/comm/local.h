/* local.h - a group whose ranks are threads of one process: the same collectives without
 * MPI.
 *
 * Each rank is a zero_comm of its own, used by one thread. Messages of step lists are
 * copied from memory to memory as soon as both sides have posted them, and small messages
 * are combined by the rank that arrives last, in the order of ranks. So all sums have the
 * bits that they have between processes. Lessons and tests run all ranks of a small job
 * this way.
 *
 * Every rank is on a node of its own, so p2p is the one algorithm: ZERO_ERR_UNSUPPORTED for
 * others. A group like this can be divided (divide.h); it has no watchdog, check or
 * progress thread. */
#pragma once

#include "comm/group.h"

/* ranks[size] = the groups of all ranks. Each stays where it is once it is used. Release
 * each with zero_comm_destroy(), when no thread uses any of them. ZERO_ERR_NOMEM. */
zero_status zero_local_open(int size, zero_comm *ranks);

/* Tells all ranks that this one has failed and will not come: their waits fail with
 * ZERO_ERR_STALLED instead of waiting for ever. */
void zero_local_abandon(zero_comm *comm);

/* ---- for the other files of comm/ ---- */

/* Combines what all ranks have brought; things[size], by rank. Called once, by the last
 * rank. */
typedef void zero_local_combine(int size, void *const *things, const void *arg);

/* Collective: returns after `combine` has seen the things of all ranks. `arg` is equal on
 * all of them. */
zero_status zero_local_meet(const zero_comm *comm, zero_local_combine *combine,
                            const void *arg, void *thing);

/* zero_comm_split() of such a group. Collective. */
zero_status zero_local_split(const zero_comm *parent, int color, zero_comm *out);
void zero_local_leave(zero_comm *comm); /* frees the group with its last rank */

/* A message of a collective in flight. */
struct zero_local_message {
    struct zero_local_message *next; /* posted later, and not matched yet either */
    bool is_used, is_send, has_ended;
    int rank, peer;
    int64_t sequence; /* of the collective */
    size_t bytes;
    char *at;
};

/* Posts message `slot` of the collective: `bytes` to or from `peer`. */
void zero_local_post(zero_collective *op, int slot, bool is_send, int peer, void *at,
                     size_t bytes);
/* Takes back the messages of a collective that nobody waits for any more. */
void zero_local_drop(zero_collective *op);
/* Frees the slots of messages that have ended. */
void zero_local_reap(zero_collective *op);

/* A number that changes whenever a rank posts a message. Read before a look, it tells
 * whether waiting is safe after it: zero_local_rest() returns as soon as the number is
 * another one, or with ZERO_ERR_STALLED if a rank was abandoned. */
int64_t zero_local_moves(const zero_comm *comm);
zero_status zero_local_rest(const zero_comm *comm, int64_t moves);
