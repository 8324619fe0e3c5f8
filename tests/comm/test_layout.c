#include "support/collective_cases.h"
#include "support/within.h"

/* The laws of every layout, whatever the ids. */
static void check_laws(const zero_layout *l, const int *ids)
{
    bool in_blocks = true;
    for (int r = 0; r < l->size; r++) {
        int lowest = r, below = 0, nodes_before = 0, on_node = 0;
        for (int q = l->size - 1; q >= 0; q--) {
            if (ids[q] == ids[r]) lowest = q;
            below += q < r && ids[q] == ids[r];
            on_node += ids[q] == ids[r];
        }
        for (int q = 0; q < lowest; q++) nodes_before += l->local_of[q] == 0;
        assert_int_equal(l->node_of[r], nodes_before);
        assert_int_equal(l->local_of[r], below);
        assert_int_equal(zero_layout_local_size(l, r), on_node);
        assert_true(zero_layout_largest_node(l) >= on_node);
        assert_within(l->node_of[r], 0, l->n_nodes - 1);
        if (r > 0 && ids[r] != ids[r - 1] && below > 0) in_blocks = false;
    }
    assert_int_equal(l->in_blocks, in_blocks);
    for (int r = 0; in_blocks && r < l->size; r++) {
        assert_int_equal(r, l->first[l->node_of[r]] + l->local_of[r]);
        assert_within(r, l->first[l->node_of[r]], l->first[l->node_of[r] + 1] - 1);
    }
    if (in_blocks) assert_int_equal(l->first[l->n_nodes], l->size);
}

TEST(ids_in_any_order_become_nodes_by_lowest_rank)
{
    for (uint64_t trial = 0; trial < 2000; trial++) {
        int ids[20], size = 1 + (int)(oracle_bits(trial, 0, 0) % 20);
        bool sorted = trial % 2;
        for (int r = 0; r < size; r++) {
            ids[r] = (int)(oracle_bits(trial, 1, r) % (1 + trial % 9)) - 3;
            if (sorted && r > 0 && ids[r] < ids[r - 1]) ids[r] = ids[r - 1];
        }
        zero_layout layout;
        assert_ok(zero_layout_init(&layout, size, ids));
        check_laws(&layout, ids);
        zero_layout_destroy(&layout);
    }
}

TEST(blocks_are_as_equal_as_possible)
{
    for (int size = 1; size <= 20; size++)
        for (int nodes = 1; nodes <= size; nodes++) {
            zero_layout layout;
            assert_ok(zero_layout_init_blocks(&layout, size, nodes));
            assert_int_equal(layout.n_nodes, nodes);
            assert_true(layout.in_blocks);
            check_laws(&layout, layout.node_of);
            for (int r = 0; r < size; r++) {
                int n = zero_layout_local_size(&layout, r);
                assert_within(n, size / nodes, zero_divide_up(size, nodes));
            }
            zero_layout_destroy(&layout);
        }
}

/* A delegate is on the node, equal local ranks work for each other, and the ranks of a node share
 * the work evenly. */
TEST(delegates_share_the_work)
{
    for (size_t i = 0; i < COUNT(test_layouts); i++) {
        zero_layout layout = layout_of(test_layouts[i]);
        for (int node = 0; node < layout.n_nodes; node++) {
            int work[12] = {0}, n = layout.first[node + 1] - layout.first[node];
            for (int local = 0; local < 12; local++) {
                int d = zero_layout_delegate(&layout, node, local);
                assert_int_equal(layout.node_of[d], node);
                if (local < n) assert_int_equal(layout.local_of[d], local);
                work[layout.local_of[d]]++;
            }
            for (int l = 0; l < n; l++)
                assert_within(work[l], 12 / n, zero_divide_up(12, n));
        }
        zero_layout_destroy(&layout);
    }
}

TEST(a_zeroed_layout_can_be_destroyed)
{
    zero_layout layout = {0};
    zero_layout_destroy(&layout);
    assert_null(layout.node_of);
}
