/* walkers.h - all ranks walk their programs: what each does next, and when.
 *
 * Looks are events: stir() orders one, at once or at the rank's next poll. */
#pragma once

#include "simulation/walker.h"

/* ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_walkers_open(zero_walkers **walkers,
                                             const zero_walkers_input *input);
void zero_walkers_close(zero_walkers *w); /* accepts NULL */
/* Bytes of memory that they will take. */
int64_t zero_walkers_bytes(const zero_groups *groups, const zero_actions *actions);

/* To be called by exchanges and disks: the rank could go on. */
void zero_walkers_stir(void *walkers, int rank);

/* Walks all ranks to the end. ZERO_ERR_NOMEM; ZERO_ERR_STALLED if ranks wait for ever,
 * which would be a mistake in this simulator or a program. */
ZERO_NODISCARD zero_status zero_walkers_run(zero_walkers *w);

/* Results of the last step. */
const zero_simulated_rank *zero_walkers_rank(const zero_walkers *w, int rank);
zero_link_use zero_walkers_busiest(const zero_walkers *w);
