/* states.h - this rank's part of the model states: filled, rounded, hashed.
 *
 *     weights --fill--> masters --round--> parameters (16-bit types)
 *
 * In fp32 parameters are their own masters. Updates beside a device leave copies, on the
 * device, of masters in the host's memory. Others read and write states by visit.h. A
 * schedule that is forward_only has no states, and in 16 bits no masters: then weights are
 * rounded on their way into the parameters. */
#pragma once

#include "state/digest.h"
#include "state/weights.h"

/* Fills all parameters that this rank holds as masters; states stay as they are. Local;
 * the status of `weights` or of zero_states_visit(), or ZERO_ERR_NOMEM. */
zero_status zero_states_fill(zero_runner *r, const zero_weights *weights);

/* Rounds all masters of this rank to the parameters. Local; the status of
 * zero_states_visit(). */
zero_status zero_states_round(zero_runner *r);

/* The digest of all ranks' states (digest.h). Collective, one verdict: ZERO_ERR_NOMEM, or
 * the status of zero_states_visit() on a rank. */
zero_status zero_states_digest(zero_runner *r, char hex[33]);
/* Begins it, with another way to read them. */
zero_status zero_states_digest_begin(zero_runner *r, const zero_digest_source *source,
                                     zero_digest_work **work);
