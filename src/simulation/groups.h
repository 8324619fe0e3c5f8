/* groups.h - the groups of all ranks that exchange data, and the step lists of their
 * collectives.
 *
 * The ranks of a job are a family (lists/member.h). Each rank is in one group of a lane
 * (actions.h):
 *
 *     ZERO_SHARD_GROUP      REDUCE, GATHER: the shard group; the ZeRO group without
 *                           replicas
 *     ZERO_REPLICA_GROUP    ALL_REDUCE
 *     ZERO_TP_GROUP         JOIN, COLLECT
 *     of a message          SEND, RECEIVE: the pipeline group, once for each stage that
 *                           sends: two members take part
 *
 * Groups of a lane and stage whose ranks share nodes in the same way have one layout, and
 * their collectives one set of lists. */
#pragma once

#include "simulation/actions.h"
#include "simulation/exchange.h"

typedef struct {
    int32_t group, member; /* as exchange.h numbers them */
    int32_t number;        /* of the group among all of its lane of groups */
    int32_t layout;        /* in zero_groups.layouts */
} zero_group_seat;

/* How the ranks of some groups share nodes, as a stage's program sees them. */
typedef struct {
    zero_layout layout; /* owned */
    int lane, stage;
    int group;        /* one of them, as exchange.h numbers it */
    int64_t n_groups; /* 0 where messages are received: senders count them */
    int *lists; /* [n_specs], owned: numbers of exchange.h, of collectives of this lane */
} zero_group_layout;

typedef struct {
    zero_division division;
    int ranks;     /* of the world */
    int per_stage; /* of a pipeline stage; else all of them */
    int gathering; /* groups that gather losses: the ranks of a TP group; 1 in a
                                           pipeline */
    zero_group_seat *seats[ZERO_LANES]; /* [ranks]; NULL: the job has no such lane */
    int n[ZERO_LANES];                  /* groups */
    int (*first)[2]; /* [n_groups]: lane of a group, and a rank of it; owned */
    int64_t n_groups, group_capacity;
    zero_group_layout *layouts; /* [n_layouts], owned */
    int64_t n_layouts, layout_capacity;
} zero_groups;

/* Finds groups and layouts of the schedule's job; of a pipeline those of messages are added
 * by zero_groups_add_stage(). ZERO_ERR_NOMEM. */
zero_status zero_groups_init(zero_groups *g, const zero_schedule *s);
void zero_groups_destroy(zero_groups *g); /* accepts a zeroed one */

/* Adds the groups of what the schedule's stage sends. ZERO_ERR_NOMEM. */
zero_status zero_groups_add_stage(zero_groups *g, const zero_schedule *s);

/* Adds them all to `x`, with the lists of the stages' collectives. ZERO_ERR_NOMEM. */
zero_status zero_groups_add(zero_groups *g, const zero_actions *stages, zero_exchanges *x);
