/* ALL_REDUCEs as collectives of the replica group, whose ranks hold the same pieces.
 *
 *     piece of group g      | part 0 | part 1 | ...    shard_len / K floats each
 *     reduce-scatter        replica r adds all replicas' part r
 *     all-gather            all replicas have all parts
 *
 * They follow the tree over replicas. A shard group's sum is a complete subtree of the tree
 * over N_d ranks, and replicas are its subtrees in order: so the bits are those of one
 * reduction among all.
 *
 * Replicas use messages even on one node: ranks of another shard group cannot read where
 * `buffer` lies. It may lie in this rank's part of the shard group's window. Neighbours have
 * read it when REDUCE_WAIT ends. They read this piece again, if at all, in a GATHER of the same
 * group, which begins after ALL_REDUCE_WAIT. */
#include <inttypes.h>

#include "base/fail.h"
#include "base/number.h"
#include "sharding/schedule_exchange.h"

static zero_algorithm algorithm_of(const zero_schedule *s)
{
    return s->input.collectives == ZERO_ALGORITHM_MPI ? ZERO_ALGORITHM_MPI
                                                      : ZERO_ALGORITHM_P2P;
}

static zero_collective_spec unbounded(const zero_schedule *s, int g, int k)
{
    int64_t count = s->groups[g].partition.shard_len / s->shard.replicas;
    return (zero_collective_spec){.kind = k == 0 ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER,
                                  .algorithm = algorithm_of(s),
                                  .type = ZERO_FP32,
                                  .result = ZERO_FP32,
                                  .count = count,
                                  .stride = count,
                                  .unit = g};
}

zero_collective_spec zero_schedule_all_reduce(const zero_schedule *s, int g, int k)
{
    zero_collective_spec spec = unbounded(s, g, k);
    zero_exchange_bound(&spec, &s->replica_layout, s->input.bucket);
    return spec;
}

size_t zero_schedule_all_reduce_staging(const zero_schedule *s, int g)
{
    size_t most = 0;
    for (int k = 0; k < ZERO_ALL_REDUCE_COLLECTIVES; k++) {
        zero_collective_spec spec = zero_schedule_all_reduce(s, g, k);
        most = zero_max_size(most, zero_collective_staging(&spec, &s->replica_layout));
    }
    return most;
}

int64_t zero_schedule_least_all_reduce(const zero_schedule *s, int g, int k)
{
    zero_collective_spec spec = unbounded(s, g, k);
    return zero_exchange_least_staging(&spec, &s->replica_layout);
}

static zero_status check_one(const zero_schedule *s, int g, int k)
{
    zero_collective_spec spec = unbounded(s, g, k);
    ZERO_TRY(zero_collective_check(&spec, &s->replica_layout));
    int64_t least = zero_schedule_least_all_reduce(s, g, k);
    if (s->input.bucket >= least) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--bucket %" PRId64 " is below the %" PRId64
                     " elements that a sum among %d replicas needs: give --bucket %" PRId64
                     " or more, or more --shard-ranks",
                     s->input.bucket, least, s->shard.replicas, least);
}

zero_status zero_schedule_check_all_reduce(const zero_schedule *s)
{
    for (int g = 0; s->shard.replicas > 1 && g < s->input.model->n_groups; g++)
        for (int k = 0; k < ZERO_ALL_REDUCE_COLLECTIVES; k++) ZERO_TRY(check_one(s, g, k));
    return ZERO_OK;
}

static zero_status count(const zero_schedule *s, int g, zero_traffic_memo *memos,
                         zero_traffic *traffic)
{
    *traffic = (zero_traffic){0};
    for (int k = 0; k < ZERO_ALL_REDUCE_COLLECTIVES; k++) {
        zero_collective_spec spec = zero_schedule_all_reduce(s, g, k);
        zero_traffic one;
        ZERO_TRY(zero_collective_traffic_again(&memos[k], &spec, &s->replica_layout,
                                               s->shard.replica, &one));
        zero_traffic_add(traffic, 1, &one);
    }
    return ZERO_OK;
}

zero_status zero_schedule_count_all_reduces(zero_schedule *s)
{
    zero_traffic_memo memos[ZERO_ALL_REDUCE_COLLECTIVES] = {0};
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_exchange *x = &s->groups[g].all_reduce;
        if (x->is_used) ZERO_TRY(count(s, g, memos, &x->traffic));
    }
    return ZERO_OK;
}
