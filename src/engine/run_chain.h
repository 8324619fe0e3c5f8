/* run_chain.h - two collectives, of which the second needs the result of the first.
 *
 * A sum over a group is a reduce-scatter, after which each rank has a piece of it, and an all-gather
 * of the pieces: JOIN in the TP group, ALL_REDUCE among replicas. The walk begins the first; a poll
 * during arithmetic, or the wait, begins the second.
 *
 *     JOIN                          JOIN_WAIT
 *     reduce-scatter ... | a poll: all-gather ... |
 *
 * A group has one chain in flight at a time, so all its ranks begin the same collectives in the same
 * order. */
#pragma once

#include "state/runner.h"

/* Begins the first collective of c->chain. It reads `in`, which may be c->whole. Collective over the
 * chain's group; does not block. */
ZERO_NODISCARD zero_status zero_chain_begin(zero_chained *c, const void *in);

/* Begins the second collective if the first has ended. Does nothing if no chain is in flight. Local;
 * does not block. */
ZERO_NODISCARD zero_status zero_chain_continue(zero_chained *c);

/* Returns when c->whole has the result of the chain in flight, or with the status of an earlier poll
 * that failed. Collective over the chain's group; blocks. */
ZERO_NODISCARD zero_status zero_chain_wait(const zero_runner *r, zero_chained *c);
