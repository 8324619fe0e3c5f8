/* Sums of squares whose blocks are spread over several holders. */

#define TEST_HAS_MAIN
#include "support/test.h"

#include "support/span_oracle.h"
#include "support/tree_oracle.h"

#define MOST_BLOCKS 70
#define MOST        (MOST_BLOCKS * ZERO_TREE_BLOCK)

static float x[MOST];

static int set_up(void **state)
{
    (void)state;
    for (int64_t i = 0; i < MOST; i++) x[i] = span_value(i);
    return 0;
}

static int64_t below(uint64_t *random, int64_t n)
{
    *random = oracle_mix(*random);
    return (int64_t)(*random % (uint64_t)n);
}

/* Merges random neighbours until one is left. */
static zero_tree_span merge_all(int n_spans, zero_tree_span *spans, uint64_t *random)
{
    while (n_spans > 1) {
        int i = (int)below(random, n_spans - 1);
        assert_true(zero_tree_span_merge(&spans[i], &spans[i + 1]));
        memmove(&spans[i + 1], &spans[i + 2], (size_t)(n_spans - i - 2) * sizeof *spans);
        n_spans--;
    }
    return spans[0];
}

/* The whole is cut anywhere; some pieces are empty, and may begin anywhere. */
static void check_cuts(int64_t n, int n_spans, uint64_t *random)
{
    enum { MOST_SPANS = 9 };
    zero_tree_span spans[MOST_SPANS];
    int64_t blocks = zero_tree_blocks(n), at = 0;
    for (int i = 0; i < n_spans; i++) {
        int64_t end = i == n_spans - 1 ? blocks : at + below(random, blocks - at + 1);
        if (below(random, 4) == 0 && i < n_spans - 1) end = at;
        spans[i] = span_of(n, x, at, end);
        if (end == at) spans[i].first = below(random, blocks + 1);
        at = end;
    }
    zero_tree_span whole = merge_all(n_spans, spans, random);
    double sum = zero_tree_sum_squares(ZERO_FP32, n, x), found;
    assert_true(zero_tree_span_is_whole(&whole));
    found = zero_tree_span_sum(&whole);
    assert_memory_equal(&sum, &found, sizeof sum);
}

TEST(any_cut_and_any_order_of_merging_give_the_bits_of_the_whole)
{
    uint64_t random = 1;
    for (int trial = 0; trial < 4000; trial++) {
        int64_t n = below(&random, 2) ? below(&random, MOST + 1)
                                      : below(&random, MOST_BLOCKS) * ZERO_TREE_BLOCK;
        check_cuts(n, 1 + (int)below(&random, 9), &random);
    }
}

/* A merged span equals the span made of all its blocks. */
TEST(merged_spans_have_the_fewest_terms)
{
    uint64_t random = 2;
    for (int trial = 0; trial < 4000; trial++) {
        int64_t first = below(&random, MOST_BLOCKS),
                count = below(&random, MOST_BLOCKS - first);
        int64_t middle = first + below(&random, count + 1);
        zero_tree_span left = span_of(MOST, x, first, middle);
        zero_tree_span right = span_of(MOST, x, middle, first + count);
        zero_tree_span both = span_of(MOST, x, first, first + count);
        assert_true(zero_tree_span_merge(&left, &right));
        assert_int_equal(left.count, both.count);
        assert_int_equal(left.n, both.n);
        assert_memory_equal(left.term, both.term, (size_t)both.n * sizeof *both.term);
    }
}

static bool is_subtree(int64_t first, int64_t size)
{
    return size > 0 && (size & (size - 1)) == 0 && first % size == 0;
}

TEST(the_walk_takes_the_largest_subtrees)
{
    for (int64_t first = 0; first < 40; first++)
        for (int64_t end = first + 1; end <= 40; end++)
            for (int64_t size, at = first; at < end; at += size) {
                size = zero_tree_span_next(at, end - at);
                int64_t parent = at & ~(2 * size - 1);
                assert_true(is_subtree(at, size) && at + size <= end);
                assert_false(first <= parent && parent + 2 * size <= end);
            }
}

/* A value per block, in a tree too large for any memory. */
static zero_tree_span make_large(int64_t first, int64_t end)
{
    zero_tree_span span = {.blocks = ZERO_TREE_SPAN_BLOCKS, .first = first};
    for (int64_t size, at = first; at < end; at += size) {
        size = zero_tree_span_next(at, end - at);
        zero_tree_span_append(&span, size, (double)size);
    }
    return span;
}

TEST(the_span_of_most_terms_has_room)
{
    const int64_t end = ZERO_TREE_SPAN_BLOCKS;
    zero_tree_span all = make_large(1, end - 1), left = make_large(0, 1);
    zero_tree_span right = make_large(end - 1, end);
    assert_int_equal(all.n, ZERO_TREE_SPAN_TERMS);
    assert_true(zero_tree_span_merge(&all, &right));
    assert_true(zero_tree_span_merge(&left, &all));
    assert_int_equal(left.n, 1);
    assert_true(zero_tree_span_sum(&left) == 0x1p57);
}

static void refuse(zero_tree_span left, zero_tree_span right)
{
    zero_tree_span before = left;
    assert_false(zero_tree_span_merge(&left, &right));
    assert_memory_equal(&before, &left, sizeof left);
}

TEST(only_neighbours_of_one_tree_merge)
{
    refuse(span_of(MOST, x, 0, 3), span_of(MOST, x, 4, 9));
    refuse(span_of(MOST, x, 0, 3), span_of(MOST, x, 2, 9));
    refuse(span_of(MOST, x, 4, 9), span_of(MOST, x, 0, 4));
    refuse(span_of(MOST, x, 0, 3), span_of(MOST - ZERO_TREE_BLOCK, x, 3, 9));
    zero_tree_span part = span_of(MOST, x, 0, MOST_BLOCKS - 1);
    assert_false(zero_tree_span_is_whole(&part));
}

TEST(nothing_has_the_sum_zero)
{
    zero_tree_span none = {.blocks = zero_tree_blocks(0)};
    assert_true(zero_tree_span_is_whole(&none));
    assert_true(zero_tree_span_sum(&none) == 0.0);
}

int main(void)
{
    return run_here(set_up, NULL);
}
