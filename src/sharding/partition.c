#include "sharding/partition.h"

static const int64_t most = INT64_C(1) << 62;

/* Granules are dealt out evenly: the last ranks of a small space may get none. */
static int64_t even_share(int64_t padded, int n_ranks)
{
    return zero_divide_up(padded / ZERO_SHARD_GRANULE, n_ranks) * ZERO_SHARD_GRANULE;
}

zero_status zero_partition_cut(zero_partition_scheme scheme, int n_ranks, int replicas,
                               int n, const int64_t *n_params, zero_partition *parts)
{
    const int pieces = n_ranks * replicas;
    int64_t sum = 0;
    assert(replicas >= 1 && (replicas == 1 || scheme == ZERO_PARTITION_SLICE));
    for (int g = 0; g < n; g++) {
        bool fits = n_params[g] >= 0 && n_params[g] <= most - sum;
        ZERO_FAIL_IF(n_ranks < 1 || !fits, ZERO_ERR_INVALID,
                     "cannot cut %" PRId64 " parameters into %d shards: expected 0 to 2^62 "
                     "parameters in all and at least one rank",
                     n_params[g], pieces);
        sum += n_params[g];
    }
    int64_t at = 0;
    for (int g = 0; g < n; g++) {
        zero_partition p = {.scheme = scheme,
                            .n_ranks = n_ranks,
                            .n_params = n_params[g],
                            .padded = zero_round_up(n_params[g], ZERO_SHARD_GRANULE),
                            .first = at};
        p.shard_len = even_share(p.padded, pieces);
        if (scheme == ZERO_PARTITION_SLICE) p.padded = p.shard_len * pieces;
        p.shard_len *= replicas;
        at += p.padded;
        parts[g] = p;
    }
    for (int g = 0; scheme == ZERO_PARTITION_OWNER && g < n; g++)
        parts[g].shard_len = even_share(at, pieces);
    return ZERO_OK;
}

static int64_t clamp(int64_t x, int64_t least, int64_t largest)
{
    return zero_max(least, zero_min(x, largest));
}

zero_range zero_partition_piece(const zero_partition *part, int rank)
{
    int64_t begin = part->shard_len * rank, end = begin + part->shard_len;
    if (part->scheme == ZERO_PARTITION_SLICE) return (zero_range){begin, end};
    return (zero_range){clamp(begin - part->first, 0, part->padded),
                        clamp(end - part->first, 0, part->padded)};
}

zero_range zero_partition_shard(const zero_partition *part, int rank)
{
    zero_range piece = zero_partition_piece(part, rank);
    return (zero_range){clamp(piece.begin, 0, part->n_params),
                        clamp(piece.end, 0, part->n_params)};
}

zero_range zero_partition_owners(const zero_partition *part)
{
    if (part->padded == 0) return (zero_range){0, 0};
    if (part->scheme == ZERO_PARTITION_SLICE) return (zero_range){0, part->n_ranks};
    return (zero_range){part->first / part->shard_len,
                        (part->first + part->padded - 1) / part->shard_len + 1};
}

int zero_partition_owner_of(const zero_partition *part, int64_t element)
{
    int64_t first = part->scheme == ZERO_PARTITION_OWNER ? part->first : 0;
    return (int)((element + first) / part->shard_len);
}

const char *zero_partition_scheme_name(int scheme)
{
    return scheme == ZERO_PARTITION_SLICE ? "slice" : "owner";
}
