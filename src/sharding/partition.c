#include "sharding/partition.h"

#include "base/grow.h"

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

/* ---- whole matrices ---- */

/* Spans of the model's flat space that no cut may be within: from the last place before a
 * matrix where a piece may begin to the first one after it. Those that overlap are one. */
static int64_t find_spans(int optimizer, int n_tensors, const zero_tensor *tensors,
                          const zero_partition *parts, zero_range *spans)
{
    int64_t n = 0;
    for (int i = 0; i < n_tensors; i++) {
        const zero_tensor *t = &tensors[i];
        const int64_t first = parts[t->group].first + t->offset;
        if (!zero_rule_moves_whole(optimizer, t)) continue;
        zero_range span = {first / ZERO_SHARD_GRANULE * ZERO_SHARD_GRANULE,
                           zero_round_up(first + t->rows * t->cols, ZERO_SHARD_GRANULE)};
        if (n > 0 && span.begin < spans[n - 1].end)
            spans[n - 1].end = span.end;
        else
            spans[n++] = span;
    }
    return n;
}

/* Cuts `all` elements into parts of at most `longest`, as long as they may be; cuts[] may
 * be NULL. False if there are more than n_ranks. */
static bool cut_at(int64_t all, int64_t longest, int64_t n, const zero_range *spans,
                   int n_ranks, int64_t *cuts)
{
    int64_t at = 0, k = 0;
    for (int r = 0; r <= n_ranks; r++) {
        if (cuts) cuts[r] = at;
        int64_t next = zero_min(at + longest, all);
        while (k < n && spans[k].end <= next) k++;
        if (k < n && next > spans[k].begin) next = spans[k].begin;
        if (r < n_ranks) at = next;
    }
    return at == all;
}

zero_status zero_partition_keep_whole(int optimizer, int n_tensors,
                                      const zero_tensor *tensors, int n,
                                      zero_partition *parts, int64_t **cuts)
{
    *cuts = NULL;
    const int n_ranks = n > 0 ? parts[0].n_ranks : 0;
    const bool is_owner = n > 0 && parts[0].scheme == ZERO_PARTITION_OWNER;
    if (!is_owner || !zero_rule_at(optimizer)->moves_matrices) return ZERO_OK;
    const int64_t all = parts[n - 1].first + parts[n - 1].padded;
    ZERO_FREED zero_range *spans = NULL;
    ZERO_TRY(zero_new(&spans, n_tensors + 1, "matrices"));
    ZERO_TRY(zero_new(cuts, (size_t)n_ranks + 1, "cuts of a model"));
    const int64_t n_spans = find_spans(optimizer, n_tensors, tensors, parts, spans);
    int64_t fits = all / ZERO_SHARD_GRANULE, too_short = -1; /* in granules */
    while (fits - too_short > 1) {
        int64_t middle = too_short + (fits - too_short) / 2;
        if (cut_at(all, middle * ZERO_SHARD_GRANULE, n_spans, spans, n_ranks, NULL))
            fits = middle;
        else
            too_short = middle;
    }
    cut_at(all, fits * ZERO_SHARD_GRANULE, n_spans, spans, n_ranks, *cuts);
    for (int g = 0; g < n; g++) {
        parts[g].shard_len = fits * ZERO_SHARD_GRANULE;
        parts[g].cuts = *cuts;
    }
    return ZERO_OK;
}

/* ---- pieces ---- */

/* The rank of an element of the model's flat space. */
static int rank_of(const zero_partition *part, int64_t at)
{
    if (!part->cuts) return (int)(at / part->shard_len);
    int first = 0, end = part->n_ranks;
    while (end - first > 1) {
        int middle = first + (end - first) / 2;
        if (part->cuts[middle] <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}

static int64_t clamp(int64_t x, int64_t least, int64_t largest)
{
    return zero_max(least, zero_min(x, largest));
}

zero_range zero_partition_piece(const zero_partition *part, int rank)
{
    const int64_t *cuts = part->cuts;
    int64_t begin = cuts ? cuts[rank] : part->shard_len * rank;
    int64_t end = cuts ? cuts[rank + 1] : begin + part->shard_len;
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
    return (zero_range){rank_of(part, part->first),
                        rank_of(part, part->first + part->padded - 1) + 1};
}

int zero_partition_owner_of(const zero_partition *part, int64_t element)
{
    int64_t first = part->scheme == ZERO_PARTITION_OWNER ? part->first : 0;
    return rank_of(part, element + first);
}

const char *zero_partition_scheme_name(int scheme)
{
    return scheme == ZERO_PARTITION_SLICE ? "slice" : "owner";
}
