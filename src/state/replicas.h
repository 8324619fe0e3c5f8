/* replicas.h - what is held more than once is compared (sharding/checks.h says what that
 * is).
 *
 *     1   16-bit parameters with this rank's masters, rounded, in the rank's own memory
 *     2   copies of replicas, of ranks, of nodes: a hash of all of them, from each rank
 *         that holds one
 *     3   of a shared model: replicated tensors, which each rank of a TP group computes for
 *         itself
 *     4   only if hashes differ: the tensor, the elements, and the copy that is wrong
 *
 * A step compares a share of 2 and 3, and UPDATE does 1. Each rank adds its hashes to a
 * sum, times zero_copy_weight(), so one word over all ranks tells whether any copies
 * differ; only if they do, everything is compared.
 *
 * To be called where parameters are whole and nothing is in flight: in a step before its
 * first UPDATE, outside after zero_engine_settle(). */
#pragma once

#include "sharding/checks.h"
#include "state/runner.h"

/* ZERO_ERR_CORRUPTED, with the same message on all ranks, if copies differ; the status of
 * zero_states_visit() if a rank cannot read its states. The schedule is compared
 * (zero_is_compared()). has_gradient: the groups' summed gradients are there, and
 * replicated ones are compared, too. Collective over all groups, one verdict. */
zero_status zero_replicas_compare(zero_runner *r, bool has_gradient);

/* The same of what is due in a step, where UPDATE does 1; or of everything. */
#define ZERO_ALL_STEPS (-1)
zero_status zero_replicas_compare_due(zero_runner *r, int64_t step, bool has_gradient);

/* The same in two parts, 1 and 3 now, and 2 in a thread beside the next step, of states
 * that stand still in the host's memory: if they are in reach, each rank sums up its
 * copies, alone, and all judge what they have summed, and how that ended, where nothing is
 * in flight again. */
zero_status zero_replicas_compare_own(zero_runner *r);
bool zero_replicas_are_in_reach(const zero_runner *r);
zero_status zero_replicas_sum_copies(zero_runner *r, uint64_t *sum);
zero_status zero_replicas_judge(zero_runner *r, zero_status looked, uint64_t sum,
                                bool has_gradient);

/* ZERO_ERR_CORRUPTED, likewise, if UPDATE on any rank has met parameters that were not its
 * masters, rounded. Also where collectives are in flight. */
zero_status zero_replicas_tell_changed(zero_runner *r);

/* Ranks first, first + step, ... of the world hold copies of the same arrays: a ZeRO group,
 * or for ZERO_COPIES_OF_REPLICAS a replica group. Returns the step. Local. */
int zero_replicas_step(const zero_schedule *s, zero_copies kind);
/* The lowest rank that shares its node's copy with `rank`: of the same node, shard group
 * and part of the model. Local. */
int zero_replicas_first_beside(const zero_runner *r, int rank);
/* The elements of group g in this rank's copy. Local. */
zero_range zero_replicas_held(const zero_schedule *s, zero_copies kind, int g);

/* For replicas.c: finds the tensor in which the ranks first, first + step, ... hold
 * different copies, and fails with it. */
zero_status zero_replicas_tell(zero_runner *r, zero_copies kind, int first);

/* For replicas.c: replicated tensors, over the TP groups. */
zero_status zero_replicas_compare_parts(zero_runner *r, bool has_gradient);
/* The same of tensors that are due in a step, as a sum that is zero over all ranks if they
 * are equal: adds this rank's part. Local. */
zero_status zero_replicas_add_parts(zero_runner *r, int64_t step, bool has_gradient,
                                    uint64_t *sum);
