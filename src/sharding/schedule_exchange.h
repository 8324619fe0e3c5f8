/* schedule_exchange.h - REDUCE, ALL_REDUCE, GATHER, JOIN, COLLECT, SEND and RECEIVE as
 * collectives, and the bytes that they move.
 *
 * With partition `slice` a group is one collective of equal shards. With `owner` it is one
 * collective per rank that owns a piece of the group. */
#pragma once

#include "sharding/schedule.h"

/* The collectives of REDUCE and of GATHER, by scheme of partition. */
extern const zero_collective_kind zero_reduce_kinds[ZERO_PARTITION_SCHEMES];
extern const zero_collective_kind zero_gather_kinds[ZERO_PARTITION_SCHEMES];

/* True if data of groups lies in the node's window: never with a device, whose own
 * parameters each rank needs. */
bool zero_schedule_shares(const zero_schedule *s);

/* The algorithm of the shard group: the input's, but with hybrid sharding shm instead of
 * hier if the group is on one node. */
zero_algorithm zero_schedule_algorithm(const zero_schedule *s);

/* A collective among the plan's ranks on `count` elements of each. */
zero_collective_spec zero_exchange_spec(const zero_schedule *s, zero_collective_kind kind,
                                        zero_algorithm algorithm, zero_type type,
                                        int64_t count, int unit);

/* Bytes from a rank's part of a window to its neighbour's. Before memory is laid out, any
 * distance other than 0 will do. */
size_t zero_schedule_apart(const zero_schedule *s, zero_space space);

/* ---- any exchange ----
 *
 * Those of one kind are numbered: REDUCE, ALL_REDUCE and GATHER as their groups, JOIN and
 * COLLECT as zero_schedule.joins, SEND and RECEIVE as its messages. */

static inline int zero_exchange_number(const zero_instruction *i)
{
    return i->join >= 0 ? i->join : i->group;
}
/* How many numbers there are, and whether a program has an exchange of this number. */
int zero_exchange_count(const zero_schedule *s, zero_op op);
bool zero_exchange_is_used(const zero_schedule *s, zero_op op, int number);

/* The nodes of the ranks among which it, or its wait, communicates, and this rank's number
 * there. */
const zero_layout *zero_exchange_layout(const zero_schedule *s, zero_op op);
int zero_exchange_rank(const zero_schedule *s, zero_op op);

/* REDUCE and GATHER begin all their collectives at once. The others are chains: ALL_REDUCE,
 * and JOIN of a sum, are a reduce-scatter, then an all-gather. */
int zero_exchange_collectives(const zero_schedule *s, zero_op op, int number);
/* The k-th of them. The bucket bounds its staging, except for `mpi`, which stages as it
 * likes. */
zero_collective_spec zero_exchange_collective(const zero_schedule *s, zero_op op,
                                              int number, int k);
/* The start of the k-th one's staging within the instruction's, in bytes. For k = the
 * number of collectives: the bytes of all. */
size_t zero_exchange_staging(const zero_schedule *s, zero_op op, int number, int k);

/* The least bucket for every exchange among N_d ranks, and among replicas. Fails as
 * zero_collective_check() does. */
zero_status zero_schedule_find_least_bucket(const zero_schedule *s, int64_t *least);
/* ZERO_ERR_INVALID if the bucket is too small for an exchange among N_d ranks. */
zero_status zero_schedule_check_exchange(const zero_schedule *s);

/* Elements that the algorithm stages when chunks are smallest: the least that a bucket can
 * be. */
int64_t zero_exchange_least_staging(const zero_collective_spec *spec,
                                    const zero_layout *layout);
/* Chooses chunks so that the algorithm, if it bounds its staging, stages at most `bucket`
 * elements, or the least if that is more. */
void zero_exchange_bound(zero_collective_spec *spec, const zero_layout *layout,
                         int64_t bucket);

/* Fills in the traffic of every exchange that the programs use. ZERO_ERR_NOMEM. */
zero_status zero_schedule_count_traffic(zero_schedule *s);
/* This rank's traffic in an exchange; zeros for other instructions. */
zero_traffic zero_instruction_traffic(const zero_schedule *s, const zero_instruction *i);
/* This rank's small messages in a program: the losses, the norms and the vote on
 * overflow. */
zero_traffic zero_schedule_control_traffic(const zero_schedule *s,
                                           zero_program_kind program);
/* This rank's traffic in all of a program's instructions of one kind. */
zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_program_kind program,
                                   zero_op op);

/* ---- JOIN, COLLECT: schedule_join.c ---- */

/* The algorithm of the TP group: that of the ZeRO group, but `hier` only if it spans
 * nodes. */
zero_algorithm zero_schedule_join_algorithm(const zero_schedule *s);
/* True if `joint` and `joined` lie in the TP group's window. */
bool zero_schedule_join_shares(const zero_schedule *s);
/* The index of all JOINs, or COLLECTs, of this form; `in` and `out` are the buffers of one
 * of them. Their traffic is counted later. A failure is kept in s->status; then the index
 * is -1. */
int zero_schedule_add_join(zero_schedule *s, zero_join_exchange form);
/* The k-th collective of a JOIN, whose staging is not bounded yet; their `unit` is its
 * index. */
zero_collective_spec zero_join_collective(const zero_schedule *s, int join, int k);

/* The index of all messages of this form; their traffic is counted later. A failure is kept
 * in s->status; then the index is -1. writer_pipeline.c */
int zero_schedule_add_message(zero_schedule *s, zero_pipe_message form);

/* ZERO_ERR_INVALID if the bucket is too small for a JOIN; ZERO_ERR_UNSUPPORTED if the
 * algorithm cannot run on the TP group's nodes. */
zero_status zero_schedule_check_joins(const zero_schedule *s);
