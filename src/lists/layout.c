#include "lists/layout.h"

#include "base/grow.h"
#include "base/tree.h"

zero_status zero_layout_init(zero_layout *layout, int size, const int *ids)
{
    ZERO_AT_END(zero_layout_destroy) zero_layout made = {.size = size};
    ZERO_FREED int *id_of = NULL;
    ZERO_TRY(zero_new(&made.node_of, size, "ranks of a layout"));
    ZERO_TRY(zero_new(&made.local_of, size, "ranks of a layout"));
    ZERO_TRY(zero_new(&made.first, size + 1, "nodes of a layout"));
    ZERO_TRY(zero_new(&id_of, size, "nodes of a layout"));
    /* Nodes are numbered as their first ranks are met. Ids usually ascend with the
     * ranks: one that is larger than all before is new, and others are sought from the
     * last node on. */
    int largest_id = 0;
    made.in_blocks = true;
    for (int rank = 0; rank < made.size; rank++) {
        int node = rank > 0 && ids[rank] <= largest_id ? made.n_nodes - 1 : -1;
        while (node >= 0 && id_of[node] != ids[rank]) node--;
        if (rank == 0 || ids[rank] > largest_id) largest_id = ids[rank];
        if (node < 0) id_of[node = made.n_nodes++] = ids[rank];
        made.in_blocks = made.in_blocks && node == made.n_nodes - 1;
        made.node_of[rank] = node;
        made.local_of[rank] = made.first[node + 1]++;
        if (made.first[node + 1] > made.largest) made.largest = made.first[node + 1];
    }
    /* So far first[] has the sizes of the nodes before. */
    for (int k = 0; k < made.n_nodes; k++) made.first[k + 1] += made.first[k];
    if (made.in_blocks) {
        zero_tree_term terms[ZERO_TREE_COVER_MAX];
        made.fewest_subtrees = made.size;
        for (int k = 0; k < made.n_nodes; k++) {
            int first = made.first[k];
            int n = zero_tree_cover(made.size, first, made.first[k + 1] - first, terms);
            made.subtrees += n;
            if (n < made.fewest_subtrees) made.fewest_subtrees = n;
            if (n > made.most_subtrees) made.most_subtrees = n;
        }
    }
    ZERO_GIVE(layout, made);
    return ZERO_OK;
}

zero_status zero_layout_init_blocks(zero_layout *layout, int size, int n_nodes)
{
    assert(1 <= n_nodes && n_nodes <= size);
    ZERO_FREED int *ids = NULL;
    int larger = size % n_nodes, len = size / n_nodes;
    ZERO_TRY(zero_new(&ids, size, "ranks of a layout"));
    /* The first nodes have one rank more, if any do. */
    for (int r = 0; r < size; r++)
        ids[r] = r < larger * (len + 1) ? r / (len + 1) : (r - larger) / len;
    return zero_layout_init(layout, size, ids);
}

void zero_layout_destroy(zero_layout *layout)
{
    zero_free(layout->node_of, layout->local_of, layout->first);
    *layout = (zero_layout){0};
}

bool zero_layout_are_equal(const zero_layout *a, const zero_layout *b)
{
    return a == b ||
           (a->size == b->size && a->n_nodes == b->n_nodes &&
            memcmp(a->node_of, b->node_of, (size_t)a->size * sizeof *a->node_of) == 0);
}

int zero_layout_local_size(const zero_layout *layout, int rank)
{
    int node = layout->node_of[rank], n = 0;
    if (layout->in_blocks) return layout->first[node + 1] - layout->first[node];
    for (int r = 0; r < layout->size; r++) n += layout->node_of[r] == node;
    return n;
}

int zero_layout_largest_node(const zero_layout *layout)
{
    return layout->largest;
}

int zero_layout_delegate(const zero_layout *layout, int node, int local)
{
    int first = layout->first[node];
    return first + local % (layout->first[node + 1] - first);
}
