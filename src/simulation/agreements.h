/* agreements.h - the small messages in which all ranks become of one mind: losses, norms,
 * the vote.
 *
 * MPI chooses their way in a run. Here a group of n ranks takes ceil(log2 n) rounds: in
 * round k rank r sends to r + 2^k and receives from r - 2^k (mod n), and begins the next
 * round when the message has come. So an agreement is over when data of all ranks has
 * passed, even if n is no power of two.
 *
 *     round 0   0 -> 1, 1 -> 2, 2 -> 0        round 1   0 -> 2, 1 -> 0, 2 -> 1
 *
 * A rank waits for its agreements one at a time, so messages go on at once. */
#pragma once

#include "simulation/exchange.h"

typedef struct zero_agreements zero_agreements;

struct zero_walkers;

/* Of the ranks of w. Losses are gathered among those with the same number in their TP
 * groups, in a pipeline among all. Borrows w. ZERO_ERR_NOMEM. */
zero_status zero_agreements_open(zero_agreements **agreements, struct zero_walkers *w);
void zero_agreements_close(zero_agreements *a); /* accepts NULL */

/* Begins the rank's next agreement: of all ranks with `bytes` in every round, or, if it
 * gathers, of those groups, with all the bytes that have come so far. All ranks begin the
 * same ones in the same order. True if it is over at once; else zero_walkers_agreed() is
 * called. */
bool zero_agreement_begin(zero_agreements *a, int rank, int64_t bytes, bool gathers);

/* A message of an agreement has arrived; the exchanges' cookie is twice this one. */
void zero_agreement_arrive(zero_agreements *a, int64_t cookie);

/* When the last rank of its group began the rank's present or last agreement, if all have;
 * else the last one so far. */
double zero_agreement_joined(const zero_agreements *a, int rank);

int64_t zero_agreement_messages(int ranks); /* of an agreement of that many ranks, in all */
