/* random_shards.h - hybrid sharding, drawn for a plan that is drawn already. */
#pragma once

#include "lists/algorithm.h"
#include "support/random_plan.h"

/* True if the ranks of each shard group, of R neighbours, are spread over nodes alike. */
static inline bool shards_are_alike(int n_ranks, int R, int nodes)
{
    int per_node = n_ranks / nodes;
    return n_ranks % nodes == 0 && (per_node % R == 0 || R % per_node == 0);
}

/* Fewer than all ranks shard together, if there are more than one. Where algorithms share memory,
 * the ranks move to one node if shard groups would be spread differently. Stage 3 may keep
 * parameters in node memory. */
static inline void random_shards(zero_plan_input *input, uint64_t *random, int *nodes)
{
    int N = input->n_ranks, R = 1 << made_draw(random, 3);
    bool shares = zero_algorithm_get(input->collectives)->works_in_window;
    input->partition = ZERO_PARTITION_SLICE;
    input->device = input->offload_host = 0;
    while (N % R != 0 || (R == N && N > 1)) R /= 2;
    input->shard_ranks = R;
    if (shares && !shards_are_alike(N, R, *nodes)) *nodes = 1;
    bool has_node_memory = shares && R > 1 && N / *nodes > 1;
    input->node_parameters = input->stage == 3 && has_node_memory && made_draw(random, 2);
}
