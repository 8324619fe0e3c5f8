/* table.h - which part of a model's state is in which shard of a checkpoint.
 *
 * A shard holds what its rank owns of every group, without padding, cut into extents. An extent is
 * elements [begin, end) of one tensor of one part of the state, at most ZERO_EXTENT_MAX of them
 * and never across a multiple of that. In the order of the file:
 *
 *     tensors in the model's order
 *         blocks of ZERO_EXTENT_MAX elements, as far as the rank owns them
 *             master, momentum, variance
 *
 * So tensors and partition alone determine what a shard holds; nothing else is accepted.
 * Lengths count elements. Nothing here is collective. */
#pragma once

#include "sharding/partition.h"
#include "zero/model.h"

#define ZERO_EXTENT_MAX  (INT64_C(1) << 20) /* 4 MiB, read and checked at once */
#define ZERO_EXTENT_NAME 128
#define ZERO_SHARDS_MOST (1 << 20)

typedef enum {
    ZERO_STATE_MASTER, /* fp32 parameters */
    ZERO_STATE_MOMENTUM,
    ZERO_STATE_VARIANCE,
    ZERO_STATES
} zero_state_part;

typedef struct {
    int n_tensors, n_groups, n_ranks;
    zero_partition_scheme scheme;
    zero_tensor *tensors; /* owned, like all below: name, rows, cols, offset, group */
    int64_t *group_params;
    zero_partition *partitions;
} zero_state_table;

typedef struct {
    int tensor;
    zero_state_part part;
    int64_t begin, end; /* in the tensor */
} zero_extent;

/* Makes it from tensors with name, rows, cols and group. ZERO_ERR_FORMAT, naming the tensor,
 * unless names are unique, sizes at least 1, all parameters at most 2^62, and groups in order
 * from 0; ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_state_table_init(zero_state_table *table, int n_tensors,
                                                 const zero_tensor *tensors,
                                                 zero_partition_scheme scheme, int n_ranks);
void zero_state_table_destroy(zero_state_table *table); /* accepts a zeroed one */

/* The extents of a rank's shard, in order; *list is the caller's (free), or NULL if *n is 0.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_state_table_extents(const zero_state_table *table, int rank,
                                                    zero_extent **list, int *n);

/* The range of an extent in its group's flat space. */
zero_range zero_extent_range(const zero_state_table *table, const zero_extent *extent);

/* "h.0.ln_1.weight[0:768].momentum" */
void zero_extent_name(const zero_state_table *table, const zero_extent *extent,
                      char name[ZERO_EXTENT_NAME]);

/* "master", "momentum", "variance" */
const char *zero_state_part_name(zero_state_part part);
