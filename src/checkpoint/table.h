/* table.h - which part of a model's state is in which shard of a checkpoint.
 *
 * A TP group of T ranks shares the model (nn/share.h), so rank d * T + p has part p of it,
 * and ZeRO shards that part over the N ranks with this p:
 *
 *     whole tensors --cut--> part p of each --partition--> shard of rank d * T + p
 *
 * A shard holds what its rank owns of every group of its part, without padding, cut into
 * extents; replicated tensors are in the shards of p = 0 alone. An extent is elements
 * [begin, end) of the part of one tensor, of one part of the state, at most
 * zero_extent_most() of them and never across a multiple of that. In the order of the file:
 *
 *     tensors in the model's order
 *         blocks of zero_extent_most() elements, as far as the rank owns them
 *             master, then the optimizer's states: momentum, variance
 *
 * The stages of a pipeline have groups of their own: those of stage s are in the shards of
 * ranks d from s * N on, as if the N ranks before them had none of it.
 *
 * So tensors, T, stages and partition alone determine what a shard holds; nothing else is
 * accepted.
 * Lengths count elements. Nothing here is collective. */
#pragma once

#include "nn/share.h"
#include "state/visit.h"

#define ZERO_EXTENT_MAX  (INT64_C(1) << 20) /* elements, 4 MiB: read and checked at once */
#define ZERO_EXTENT_NAME 128
#define ZERO_SHARDS_MOST (1 << 20)
/* A reader looks at each tensor for each shard, and cuts each tensor for each rank of a TP
 * group. A table from outside may claim any numbers, so their products have limits, too. */
#define ZERO_PIECES_MOST (INT64_C(1) << 28)
#define ZERO_PARTS_MOST  (INT64_C(1) << 22)

/* How a model is divided among ranks. tp and slices are a zero_share's. */
typedef struct {
    zero_partition_scheme scheme;
    int n_ranks; /* of all groups: shards */
    int tp, slices;
    int optimizer;     /* a row of math/rules.h */
    int pp;            /* stages of a pipeline; 0 counts as 1 */
    const int *stages; /* [n_tensors] which one has each; NULL: 0. Borrowed by init */
} zero_state_layout;

typedef struct {
    int n_tensors, n_groups;
    zero_state_layout layout;
    /* owned: the whole tensors, with name, rows, cols, group and cut */
    zero_tensor *tensors;
    int *stage; /* [n_groups] owned: the stage that has each */
} zero_state_table;

/* The tensors' parts that the ranks of one p have, and how ZeRO shards them. */
typedef struct {
    int p;
    zero_tensor *tensors;       /* [n_tensors] owned, as those of a zero_model_share() */
    zero_partition *partitions; /* [n_groups] owned */
    int64_t *cuts;              /* theirs, owned; or NULL */
    int *first;                 /* [n_groups] owned: d of the first rank that has each */
} zero_state_local;

typedef struct {
    int tensor;
    zero_state_part part;
    int64_t begin, end; /* in the tensor's part */
} zero_extent;

/* True if a TP group shares the model's tensors, or sums are cut in slices: then a manifest
 * says so. */
static inline bool zero_state_table_is_shared(const zero_state_table *table)
{
    return table->layout.slices > 1;
}

/* Makes it from whole tensors with name, rows, cols, group, cut and cut_parts, which is 0
 * or more. ZERO_ERR_FORMAT, naming the tensor, unless names are unique, sizes at least 1,
 * all parameters at most 2^62, groups in order from 0, each in one stage, cut tensors have
 * a row or column for each slice, and the products above are within their limits;
 * ZERO_ERR_NOMEM. */
zero_status zero_state_table_init(zero_state_table *table, int n_tensors,
                                  const zero_tensor *tensors,
                                  const zero_state_layout *layout);
void zero_state_table_destroy(zero_state_table *table); /* accepts a zeroed one */

/* The parts of p, 0 <= p < tp. ZERO_ERR_NOMEM. */
zero_status zero_state_local_init(zero_state_local *local, const zero_state_table *table,
                                  int p);
void zero_state_local_destroy(zero_state_local *local); /* accepts a zeroed one */

/* Elements of an extent, at most. Column-cut rows lie in tp extents in turn, and a reader
 * of the whole tensor keeps all of these. So with a larger tp extents are smaller. */
int64_t zero_extent_most(const zero_state_table *table);

/* The shard of rank d * tp + p holds these elements of a group, without padding. */
zero_range zero_state_group_in_shard(const zero_state_local *local, int group, int d);
/* The same of a tensor's part; [0, 0): it has none. */
zero_range zero_state_in_shard(const zero_state_local *local, int tensor, int d);

/* Adds the elements of p's parts that the shard of d * tp + p holds to elements[d], for
 * each d.
 * ZERO_ERR_NOMEM. */
zero_status zero_state_add_elements(const zero_state_table *table,
                                    const zero_state_local *local, uint64_t *elements);

/* The parts of the state of a tensor's elements. */
int zero_state_parts(const zero_state_table *table, int tensor);

/* The number of extents of that shard, without listing them. */
int64_t zero_state_count_extents(const zero_state_table *table,
                                 const zero_state_local *local, int d);

/* The extents of that shard, in order; *list is the caller's (free), or NULL if *n is 0.
 * ZERO_ERR_NOMEM. */
zero_status zero_state_table_extents(const zero_state_table *table,
                                     const zero_state_local *local, int d,
                                     zero_extent **list, int *n);

/* The range of an extent in the flat space of the local group. */
zero_range zero_extent_range(const zero_state_local *local, const zero_extent *extent);

/* "h.0.ln_1.weight[0:768].momentum"; of a part
 * "h.0.attn.c_attn.weight@1/4[0:768].momentum" */
void zero_extent_name(const zero_state_table *table, int p, const zero_extent *extent,
                      char name[ZERO_EXTENT_NAME]);

/* The p that has element `whole` of a whole tensor; 0 for a replicated one. */
int zero_state_holder(const zero_state_table *table, int tensor, int64_t whole);

/* Elements of a whole tensor: the shard of d holds the first one, and as many of the run as
 * it has. */
typedef struct {
    int d;
    zero_stretch run;
} zero_state_place;

/* Where elements [at, end) of the whole tensor begin, of which `local`, that of
 * zero_state_holder(), has the first. */
zero_state_place zero_state_find(const zero_state_local *local, int tensor, int64_t at,
                                 int64_t end);
