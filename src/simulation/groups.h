/* groups.h - the groups of all ranks that exchange data, and the step lists of their
 * collectives.
 *
 * The ranks of a job are a family (lists/member.h). Each rank is in one group of a part:
 *
 *     ZERO_SHARD_GROUP      REDUCE, GATHER: the shard group; the ZeRO group without
 *                           replicas
 *     ZERO_REPLICA_GROUP    ALL_REDUCE
 *     ZERO_TP_GROUP         JOIN, COLLECT
 *
 * Groups of a part whose ranks share nodes in the same way have one layout, and their
 * collectives one set of lists. */
#pragma once

#include "simulation/actions.h"
#include "simulation/exchange.h"

typedef struct {
    int32_t group, member; /* as exchange.h numbers them; group -1: nothing is exchanged */
    int32_t number;        /* of the group among all of its part */
    int32_t layout;        /* in zero_groups.layouts */
} zero_group_seat;

/* How the ranks of some groups of a part share nodes. */
typedef struct {
    zero_layout layout; /* owned */
    zero_family_part part;
    int64_t n_groups;
    int *lists; /* [n_specs], owned: numbers of exchange.h, of collectives of this part */
} zero_group_layout;

typedef struct {
    int ranks;                                 /* of the world */
    int tp;                                    /* of a TP group; 1 without */
    zero_group_seat *seats[ZERO_FAMILY_PARTS]; /* [ranks]; NULL: the job has no such part */
    int size[ZERO_FAMILY_PARTS];               /* ranks of a group */
    int n[ZERO_FAMILY_PARTS];                  /* groups */
    zero_group_layout *layouts;                /* [n_layouts], owned */
    int64_t n_layouts, layout_capacity;
} zero_groups;

/* Finds groups and layouts of the schedule's job. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_groups_init(zero_groups *g, const zero_schedule *s);
void zero_groups_destroy(zero_groups *g); /* accepts a zeroed one */

/* Adds them all to `x`, with the lists of the actions' collectives. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_groups_add(zero_groups *g, const zero_actions *a,
                                           zero_exchanges *x);
