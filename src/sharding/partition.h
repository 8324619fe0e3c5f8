/* partition.h - who owns which part of a group.
 *
 * The parameters of a group lie end to end in a flat space, padded to whole granules of 64
 * elements, whatever the type; padding stays zero. Two ways to cut it:
 *
 *     slice    every group is cut into N_d equal shards; rank r owns shard r in every stage
 *
 *         0        shard_len     2*shard_len           n_params   N_d*shard_len
 *         |  rank 0   |   rank 1    |   ...  |   rank N_d-1  |  pad  |
 *
 *     owner    the paper's: the flat space of the whole model, group after group, is cut
 *              once into N_d equal parts, so a group has one owner or a few adjacent ones
 *
 *         | group 0 | group 1 | group 2 | group 3 |  ...
 *         |   rank 0     |    rank 1    |    ...
 *
 * Where an optimizer moves matrices as a whole (math/rules.h), `owner` cuts at matrices: no
 * cut is within one, and the longest part is as short as that allows. Parts stay
 * neighbours, so a rank's piece of a group is one range.
 *
 * `slice` keeps traffic balanced at every moment of the step; the totals are equal. Lengths
 * count elements. Nothing here allocates or communicates. Source: Rajbhandari et al., ZeRO,
 * arXiv:1910.02054, section 5 and figure 1. */
#pragma once

#include "base/fail.h"
#include "base/range.h"
#include "math/rules.h"

#define ZERO_SHARD_GRANULE 64

typedef enum {
    ZERO_PARTITION_SLICE,
    ZERO_PARTITION_OWNER,
    ZERO_PARTITION_SCHEMES
} zero_partition_scheme;

typedef struct {
    zero_partition_scheme scheme;
    int n_ranks; /* N_d */
    int64_t n_params;
    int64_t padded;    /* the length of the flat space */
    int64_t first;     /* owner: where the group begins in the model's flat space */
    int64_t shard_len; /* of each rank: in this group, or (owner) in the whole model */
    /* owner, with whole matrices: the model's parts begin there, [n_ranks + 1]; borrowed.
     * NULL: each has shard_len elements. */
    const int64_t *cuts;
} zero_partition;

/* Cuts n groups of n_params[g] elements for n_ranks ranks, each with a copy in every
 * replica: cuts among n_ranks * replicas ranks, then joins each run of `replicas`
 * neighbouring shards into one. So padding is that of the finer cut, and a shard divides
 * into `replicas` parts of whole granules. `replicas` is 1 unless the scheme is slice. Not
 * collective: equal arguments give equal results on every rank. Returns ZERO_ERR_INVALID,
 * leaving parts[] undefined, unless 0 <= n_params[g], their sum is at most 2^62, and
 * n_ranks >= 1. */
zero_status zero_partition_cut(zero_partition_scheme scheme, int n_ranks, int replicas,
                               int n, const int64_t *n_params, zero_partition *parts);

/* Cuts the groups of zero_partition_cut() anew if they are `owner` and the optimizer moves
 * some of the tensors, which come in the order of groups, as a whole. *cuts is the caller's
 * (free), or NULL. ZERO_ERR_NOMEM. */
zero_status zero_partition_keep_whole(int optimizer, int n_tensors,
                                      const zero_tensor *tensors, int n,
                                      zero_partition *parts, int64_t **cuts);

/* The elements that a rank owns, padding included. The pieces of all ranks tile [0,
 * padded). A piece may be empty; its rank still joins every collective. */
zero_range zero_partition_piece(const zero_partition *part, int rank);

/* The elements that a rank owns, padding left out. */
zero_range zero_partition_shard(const zero_partition *part, int rank);

/* Ranks [begin, end) own elements of the padded group; the others own none. */
zero_range zero_partition_owners(const zero_partition *part);

/* The rank whose piece holds an element of the padded group. */
int zero_partition_owner_of(const zero_partition *part, int64_t element);

/* "slice" */
const char *zero_partition_scheme_name(int scheme); /* of a zero_partition_scheme */
