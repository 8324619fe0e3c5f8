/* walker_exchange.h - REDUCE, ALL_REDUCE, GATHER, JOIN and COLLECT of a rank on its walk. */
#pragma once

#include "simulation/walker.h"

/* Begins the collectives of an action, of a chain the first. Returns seconds of arithmetic. */
double zero_walker_begin_exchange(zero_walkers *w, int rank, const zero_action *a);
/* Begins the second collectives of chains whose first ones are over. Returns as above. */
double zero_walker_continue_chains(zero_walkers *w, int rank);

/* True if what the action waits for is over. A chain is ended then. */
bool zero_walker_exchange_is_over(zero_walkers *w, int rank, const zero_action *a);
/* When the last member of the group so far began what the action waits for. */
double zero_walker_joined(const zero_walkers *w, int rank, const zero_action *a);

/* Tells of a collective that has ended on a rank, if it was in flight in the step that is
 * reported. */
void zero_walker_exchange_ended(const zero_walkers *w, const zero_exchange_end *end);
