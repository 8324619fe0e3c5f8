/* layout.h - which ranks of a group share a node.
 *
 * Nodes are numbered in the order of their lowest ranks. Algorithms that work in two levels
 * need nodes in blocks: ranks first[k] .. first[k+1]-1 on node k, mpirun's default mapping.
 *
 *     ranks    0 1 2 | 3 4 | 5 6 7       node_of = 0 0 0 1 1 2 2 2, first = 0 3 5 8
 *
 * Plain data without MPI, so that a plan can be made for any machine. */
#pragma once

#include "base/fail.h"

typedef struct {
    int size; /* ranks */
    int n_nodes;
    bool in_blocks;
    int *node_of;  /* [size] */
    int *local_of; /* [size]: number of lower ranks on the same node */
    int *first;    /* [n_nodes + 1]; meaningless unless in_blocks */
    int largest;   /* ranks of the largest node */
    /* In blocks: the complete subtrees of a sum over all ranks (base/tree.h) that tile
     * nodes: of all nodes together, and of the ones that have fewest and most. */
    int subtrees, fewest_subtrees, most_subtrees;
} zero_layout;

/* Ranks with equal ids share a node. ZERO_ERR_NOMEM; release with _destroy. */
zero_status zero_layout_init(zero_layout *layout, int size, const int *ids);

/* `n_nodes` blocks of ranks, as equal as possible. 1 <= n_nodes <= size. */
zero_status zero_layout_init_blocks(zero_layout *layout, int size, int n_nodes);

void zero_layout_destroy(zero_layout *layout); /* accepts a zeroed layout */

/* True if the same ranks share nodes in both. */
bool zero_layout_are_equal(const zero_layout *a, const zero_layout *b);

int zero_layout_local_size(const zero_layout *layout, int rank); /* ranks on its node */
int zero_layout_largest_node(const zero_layout *layout);

/* The rank on node `node`, in blocks, that works for local rank `local` of another node:
 * the same local rank, modulo the node's size. */
int zero_layout_delegate(const zero_layout *layout, int node, int local);
