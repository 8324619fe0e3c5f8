#include "sharding/partition.h"

#include <inttypes.h>

zero_status zero_partition_init(zero_partition *part, int64_t n_params, int n_ranks)
{
    if (n_params < 0 || n_params > INT64_C(1) << 62 || n_ranks < 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "cannot cut %" PRId64
                         " parameters into %d shards: expected 0 to 2^62 "
                         "parameters and at least one rank",
                         n_params, n_ranks);
    int64_t granules = (n_params + ZERO_SHARD_GRANULE - 1) / ZERO_SHARD_GRANULE;
    int64_t per_rank = (granules + n_ranks - 1) / n_ranks;
    *part = (zero_partition){.n_params = n_params,
                             .shard_len = per_rank * ZERO_SHARD_GRANULE,
                             .n_ranks = n_ranks};
    return ZERO_OK;
}

zero_range zero_partition_shard(const zero_partition *part, int rank)
{
    int64_t begin = part->shard_len * rank, end = begin + part->shard_len;
    if (begin > part->n_params) begin = part->n_params;
    if (end > part->n_params) end = part->n_params;
    return (zero_range){begin, end};
}

int64_t zero_partition_padded(const zero_partition *part)
{
    return part->shard_len * part->n_ranks;
}
