/* schedule_exchange.h - REDUCE, ALL_REDUCE, GATHER, JOIN and COLLECT as collectives, and the
 * bytes that they move.
 *
 * With partition `slice` a group is one collective of equal shards. With `owner` it is one
 * collective per rank that owns a piece of the group. */
#pragma once

#include "sharding/schedule.h"

/* The collectives of REDUCE and of GATHER, by scheme of partition. */
extern const zero_collective_kind zero_reduce_kinds[ZERO_PARTITION_SCHEMES];
extern const zero_collective_kind zero_gather_kinds[ZERO_PARTITION_SCHEMES];

/* True if data of groups lies in the node's window: never with a device, whose own parameters each
 * rank needs. */
bool zero_schedule_shares(const zero_schedule *s);

/* The algorithm of the shard group: the input's, but with hybrid sharding shm instead of hier
 * if the group is on one node. */
zero_algorithm zero_schedule_algorithm(const zero_schedule *s);

/* The number of collectives in a REDUCE or GATHER of group g. */
int zero_schedule_collectives(const zero_schedule *s, int g);
/* The k-th of them. The bucket bounds its staging, except for `mpi`, which stages as it likes. */
zero_collective_spec zero_schedule_collective(const zero_schedule *s, zero_op op, int g,
                                              int k);
/* The start of the k-th one's staging within the instruction's, in bytes. For k = the number of
 * collectives: the bytes of all. */
size_t zero_schedule_staging(const zero_schedule *s, zero_op op, int g, int k);

/* The least bucket for every exchange among N_d ranks, and among replicas. Fails as
 * zero_collective_check() does. */
ZERO_NODISCARD zero_status zero_schedule_find_least_bucket(const zero_schedule *s,
                                                           int64_t *least);
/* ZERO_ERR_INVALID if the bucket is too small for an exchange among N_d ranks. */
ZERO_NODISCARD zero_status zero_schedule_check_exchange(const zero_schedule *s);

/* Elements that the algorithm stages when chunks are smallest: the least that a bucket can
 * be. */
int64_t zero_exchange_least_staging(const zero_collective_spec *spec,
                                    const zero_layout *layout);
/* Chooses chunks so that the algorithm, if it bounds its staging, stages at most `bucket`
 * elements, or the least if that is more. */
void zero_exchange_bound(zero_collective_spec *spec, const zero_layout *layout,
                         int64_t bucket);

/* Fills in the traffic of every exchange that the programs use. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_schedule_count_traffic(zero_schedule *s);
/* This rank's traffic in a REDUCE, ALL_REDUCE, GATHER, JOIN or COLLECT; zeros for other
 * instructions. */
zero_traffic zero_instruction_traffic(const zero_schedule *s, const zero_instruction *i);
/* This rank's small messages in a program: the losses, the norms and the vote on overflow. */
zero_traffic zero_schedule_control_traffic(const zero_schedule *s,
                                           zero_program_kind program);
/* This rank's traffic in all of a program's instructions of one kind. */
zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_program_kind program,
                                   zero_op op);

/* ---- ALL_REDUCE: schedule_all_reduce.c ---- */

/* A reduce-scatter over the replica group, k = 0, then an all-gather, k = 1, by messages. Both
 * work in place on this rank's piece of group g, which begins at its first element in
 * `buffer`: replica r adds up the r-th part, `count` floats, and then gives it to all. Both
 * use the instruction's staging from its start. */
#define ZERO_ALL_REDUCE_COLLECTIVES 2
zero_collective_spec zero_schedule_all_reduce(const zero_schedule *s, int g, int k);
size_t zero_schedule_all_reduce_staging(const zero_schedule *s, int g); /* bytes */

/* Elements that the k-th one stages when chunks are smallest. */
int64_t zero_schedule_least_all_reduce(const zero_schedule *s, int g, int k);

/* As zero_schedule_check_exchange() and zero_schedule_count_traffic(). They do nothing
 * without replicas. */
ZERO_NODISCARD zero_status zero_schedule_check_all_reduce(const zero_schedule *s);
ZERO_NODISCARD zero_status zero_schedule_count_all_reduces(zero_schedule *s);

/* ---- JOIN, COLLECT: schedule_join.c ---- */

/* The algorithm of the TP group: that of the ZeRO group, but `hier` only if it spans nodes. */
zero_algorithm zero_schedule_join_algorithm(const zero_schedule *s);
/* The collectives of a JOIN, one after the other: 2 for a sum, 1 for a gather. Their `unit` is
 * the JOIN's index. All share the instruction's staging, from its start on. */
int zero_schedule_join_collectives(const zero_join_exchange *join);
zero_collective_spec zero_schedule_join(const zero_schedule *s, int join, int k);
size_t zero_schedule_join_staging(const zero_schedule *s, int join); /* bytes */

/* True if `joint` and `joined` lie in the TP group's window. */
bool zero_schedule_join_shares(const zero_schedule *s);
/* The index of all JOINs, or COLLECTs, of this form; `in` and `out` are the buffers of one of
 * them. Their traffic is counted later. A failure is kept in s->status; then the index is -1. */
int zero_schedule_add_join(zero_schedule *s, zero_join_exchange form);

/* ZERO_ERR_INVALID if the bucket is too small for a JOIN; ZERO_ERR_UNSUPPORTED if the
 * algorithm cannot run on the TP group's nodes. */
ZERO_NODISCARD zero_status zero_schedule_check_joins(const zero_schedule *s);
/* Fills in the traffic of JOINs. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_schedule_count_joins(zero_schedule *s);
