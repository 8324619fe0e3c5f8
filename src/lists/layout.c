#include "lists/layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/tree.h"

static zero_status allocate(zero_layout *made, int size)
{
    *made = (zero_layout){.size = size};
    zero_status st = zero_new(&made->node_of, size, "ranks of a layout");
    if (st == ZERO_OK) st = zero_new(&made->local_of, size, "ranks of a layout");
    if (st == ZERO_OK) st = zero_new(&made->first, size + 1, "nodes of a layout");
    if (st != ZERO_OK) zero_layout_destroy(made);
    return st;
}

/* ---- numbering ---- */

/* A node that has been met, to be found by its id. */
typedef struct {
    int id, node;
} met_node;

/* The place in met[n], in ascending order of ids, of the first id that is not below. */
static int find_id(const met_node *met, int n, int id)
{
    int low = 0, high = n;
    if (n > 0 && met[n - 1].id < id) return n; /* ids usually ascend with the ranks */
    while (low < high) {
        int k = low + (high - low) / 2;
        if (met[k].id < id)
            low = k + 1;
        else
            high = k;
    }
    return low;
}

/* The node of that id: one of those met before, or a new one. */
static int number_node(zero_layout *made, met_node *met, int id)
{
    int n = made->n_nodes, at = find_id(met, n, id);
    if (at < n && met[at].id == id) return met[at].node;
    memmove(met + at + 1, met + at, (size_t)(n - at) * sizeof *met);
    met[at] = (met_node){id, n};
    return made->n_nodes++;
}

static void add_up_blocks(zero_layout *made)
{
    int at = 0;
    for (int k = 0; k <= made->n_nodes; k++) {
        int size = k < made->n_nodes ? made->first[k] : 0;
        made->first[k] = at;
        at += size;
    }
}

static void count_subtrees(zero_layout *made)
{
    zero_tree_term terms[ZERO_TREE_COVER_MAX];
    made->fewest_subtrees = made->size;
    for (int k = 0; k < made->n_nodes; k++) {
        int first = made->first[k];
        int n = zero_tree_cover(made->size, first, made->first[k + 1] - first, terms);
        made->subtrees += n;
        if (n < made->fewest_subtrees) made->fewest_subtrees = n;
        if (n > made->most_subtrees) made->most_subtrees = n;
    }
}

zero_status zero_layout_init(zero_layout *layout, int size, const int *ids)
{
    zero_layout made;
    ZERO_TRY(allocate(&made, size));
    met_node *met;
    zero_status st = zero_new(&met, size, "nodes of a layout");
    if (st != ZERO_OK) {
        zero_layout_destroy(&made);
        return st;
    }
    /* While nodes are being numbered, first[] counts the ranks of each. */
    made.in_blocks = true;
    for (int rank = 0; rank < made.size; rank++) {
        bool is_same = rank > 0 && ids[rank] == ids[rank - 1];
        int node = is_same ? made.node_of[rank - 1] : number_node(&made, met, ids[rank]);
        made.node_of[rank] = node;
        made.local_of[rank] = made.first[node]++;
        if (made.first[node] > made.largest) made.largest = made.first[node];
        if (node < made.n_nodes - 1) made.in_blocks = false;
    }
    free(met);
    if (made.in_blocks) {
        add_up_blocks(&made);
        count_subtrees(&made);
    }
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
    made.largest = size / n_nodes + (size % n_nodes > 0);
    int at = 0;
    for (int k = 0; k < n_nodes; k++) {
        made.first[k] = at;
        int end = at + size / n_nodes + (k < size % n_nodes);
        for (; at < end; at++) {
            made.node_of[at] = k;
            made.local_of[at] = at - made.first[k];
        }
    }
    made.first[n_nodes] = size;
    count_subtrees(&made);
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
