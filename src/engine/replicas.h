/* replicas.h - what is held more than once is compared (sharding/checks.h says what that is).
 *
 *     1   16-bit parameters with this rank's masters, rounded, in the rank's own memory
 *     2   copies of ranks, then of nodes: a hash of all of them, from each rank
 *     3   only if hashes differ: the tensor, the elements, and the copy that is wrong
 *
 * To be called where parameters are whole and nothing is in flight: in a step before its first
 * UPDATE, outside after zero_engine_settle(). */
#pragma once

#include "engine/runner.h"
#include "sharding/checks.h"

/* ZERO_ERR_CORRUPTED, with the same message on all ranks, if copies differ; the status of
 * zero_states_visit() if a rank cannot read its states. The schedule is compared
 * (zero_is_compared()). Collective, one verdict. */
ZERO_NODISCARD zero_status zero_replicas_compare(zero_runner *r);

/* For replicas.c: finds the tensor in which copies of a kind differ, and fails with it. */
ZERO_NODISCARD zero_status zero_replicas_tell(zero_runner *r, zero_copies kind);
