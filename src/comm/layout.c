#include "comm/layout.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fail.h"

static zero_status allocate(zero_layout *made, int size)
{
    *made = (zero_layout){.size = size};
    made->node_of = calloc((size_t)size, sizeof *made->node_of);
    made->local_of = calloc((size_t)size, sizeof *made->local_of);
    made->first = calloc((size_t)size + 1, sizeof *made->first);
    if (made->node_of && made->local_of && made->first) return ZERO_OK;
    zero_layout_destroy(made);
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the layout of %d ranks", size);
}

/* While nodes are being numbered, first[] holds the lowest rank of each. */
static int find_node(const zero_layout *made, const int *ids, int rank)
{
    if (rank > 0 && ids[rank] == ids[rank - 1]) return made->node_of[rank - 1];
    for (int k = 0; k < made->n_nodes; k++)
        if (ids[made->first[k]] == ids[rank]) return k;
    return made->n_nodes;
}

/* Ranks below `end` on the node. */
static int count_on_node(const zero_layout *layout, int node, int end)
{
    int n = 0;
    for (int r = 0; r < end; r++) n += layout->node_of[r] == node;
    return n;
}

static void number_locally(zero_layout *made)
{
    for (int rank = 0; rank < made->size; rank++) {
        int node = made->node_of[rank];
        made->local_of[rank] =
            made->in_blocks ? rank - made->first[node] : count_on_node(made, node, rank);
    }
}

zero_status zero_layout_init(zero_layout *layout, int size, const int *ids)
{
    zero_layout made;
    ZERO_TRY(allocate(&made, size));
    made.in_blocks = true;
    for (int rank = 0; rank < size; rank++) {
        int node = find_node(&made, ids, rank);
        made.node_of[rank] = node;
        if (node == made.n_nodes) made.first[made.n_nodes++] = rank;
        if (node < made.n_nodes - 1) made.in_blocks = false;
    }
    made.first[made.n_nodes] = size;
    number_locally(&made);
    *layout = made;
    return ZERO_OK;
}

zero_status zero_layout_init_blocks(zero_layout *layout, int size, int n_nodes)
{
    assert(1 <= n_nodes && n_nodes <= size);
    zero_layout made;
    ZERO_TRY(allocate(&made, size));
    made.in_blocks = true;
    made.n_nodes = n_nodes;
    int at = 0;
    for (int k = 0; k < n_nodes; k++) {
        made.first[k] = at;
        int end = at + size / n_nodes + (k < size % n_nodes);
        while (at < end) made.node_of[at++] = k;
    }
    made.first[n_nodes] = size;
    number_locally(&made);
    *layout = made;
    return ZERO_OK;
}

void zero_layout_destroy(zero_layout *layout)
{
    free(layout->node_of);
    free(layout->local_of);
    free(layout->first);
    *layout = (zero_layout){0};
}

int zero_layout_local_size(const zero_layout *layout, int rank)
{
    int most = 0;
    for (int r = 0; r < layout->size; r++)
        if (layout->node_of[r] == layout->node_of[rank] && layout->local_of[r] > most)
            most = layout->local_of[r];
    return most + 1;
}

int zero_layout_largest_node(const zero_layout *layout)
{
    int most = 0;
    for (int r = 0; r < layout->size; r++)
        if (layout->local_of[r] > most) most = layout->local_of[r];
    return most + 1;
}

int zero_layout_delegate(const zero_layout *layout, int node, int local)
{
    int first = layout->first[node];
    return first + local % (layout->first[node + 1] - first);
}
