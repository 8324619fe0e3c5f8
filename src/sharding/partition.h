/* partition.h - who owns which part of a group.
 *
 * The parameters of a group lie end to end in a flat space, padded to N_d equal shards; rank r
 * owns shard r in every stage. Shards are whole multiples of 64 elements, whatever the type,
 * and padding stays zero.
 *
 *     0        shard_len     2*shard_len           n_params   N_d*shard_len
 *     |  rank 0   |   rank 1    |   ...  |   rank N_d-1  |  pad  |
 *
 * The paper cuts the whole model once; cutting each group keeps traffic balanced at every
 * moment of the step. Lengths count elements. Nothing here allocates or communicates.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5 and figure 1. */
#pragma once

#include <stdint.h>

#include "zero/status.h"

#define ZERO_SHARD_GRANULE 64

typedef struct {
    int64_t n_params;
    int64_t shard_len; /* the same on every rank */
    int n_ranks;       /* N_d */
} zero_partition;

typedef struct {
    int64_t begin, end; /* [begin, end) in the flat space */
} zero_range;

/* Not collective: equal arguments give equal results on every rank. Returns ZERO_ERR_INVALID,
 * leaving *part untouched, unless 0 <= n_params <= 2^62 and n_ranks >= 1. */
ZERO_NODISCARD zero_status zero_partition_init(zero_partition *part, int64_t n_params,
                                               int n_ranks);

/* One rank's true parameters, padding left out. Empty for the last ranks of a small group:
 * that is no error, and such a rank still joins every collective. */
zero_range zero_partition_shard(const zero_partition *part, int rank);

/* The length of the flat space with its padding. */
int64_t zero_partition_padded(const zero_partition *part);
