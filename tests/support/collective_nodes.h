/* collective_nodes.h - the nodes that the ranks of a test pretend to run on. */
#pragma once

#include "comm/comm.h"
#include "support/test_world.h"

enum { ONE_NODE, TWO_NODES, ONE_AND_REST, PAIRS, ALONE, ALTERNATING, AS_IS, ARRANGEMENTS };

static inline int node_of(int arrangement, int rank, int size)
{
    switch (arrangement) {
    case ONE_NODE: return 0;
    case TWO_NODES: return rank >= (size + 1) / 2;
    case ONE_AND_REST: return rank > 0;
    case PAIRS: return rank / 2;
    case ALONE: return rank;
    case ALTERNATING: return rank % 2;
    }
    return world.layout.node_of[rank];
}

/* Ranks that run on several nodes cannot pretend to share one. On a single node AS_IS would repeat
 * ONE_NODE. */
static inline bool is_possible(int arrangement)
{
    if (arrangement == AS_IS) return world.layout.n_nodes > 1;
    for (int r = 1; r < world.size; r++)
        for (int q = 0; q < r; q++)
            if (node_of(arrangement, q, world.size) ==
                    node_of(arrangement, r, world.size) &&
                world.layout.node_of[q] != world.layout.node_of[r])
                return false;
    return true;
}

/* All ranks, as a new group on nodes of that arrangement. */
static inline zero_comm arrange(int arrangement)
{
    zero_comm comm;
    int ids[64];
    assert_true(world.size <= 64);
    for (int r = 0; r < world.size; r++) ids[r] = node_of(arrangement, r, world.size);
    assert_ok(zero_comm_split(&world, 0, 0, &comm));
    assert_ok(zero_comm_pretend_nodes(&comm, ids));
    return comm;
}

/* True if the algorithm can run on the layout. */
static inline bool fits(zero_algorithm algorithm, const zero_layout *layout)
{
    if (algorithm == ZERO_ALGORITHM_SHM) return layout->n_nodes == 1;
    return algorithm != ZERO_ALGORITHM_HIER || layout->in_blocks;
}
