/* Planned traffic is counted while steps are written; what runs is a list. Both are the same. */
#include "lists/algorithm.h"

#include "support/collective_cases.h"
#include "support/share.h"

#define TRIALS (20000 / TEST_SHARE(4))

/* Ranks of nodes in blocks, of equal and of other sizes, and for some trials not in blocks. */
static zero_layout vary_layout(uint64_t *random)
{
    static const int64_t nodes[] = {1, 1, 2, 3, 5, 8, 40}, times[] = {1, 1, 2, 4};
    zero_layout layout;
    int ids[48], size = 0, node = -1;
    int n_nodes = (int)pick(random, COUNT(nodes), nodes);
    bool is_even = toss(random), is_dealt = toss(random) && toss(random);
    int64_t even = pick(random, COUNT(times), times);
    while (++node < n_nodes && size < 40) {
        int64_t n = is_even ? even : 1 + pick(random, COUNT(nodes), nodes) % 7;
        for (; n > 0 && size < 48; n--) ids[size++] = 7 * node - 20;
    }
    for (int r = 0; is_dealt && r < size; r++) ids[r] = -(r % n_nodes);
    assert_ok(zero_layout_init(&layout, size, ids));
    return layout;
}

static zero_collective_spec vary(const zero_layout *layout, uint64_t *random)
{
    static const int64_t kinds[] = {ZERO_REDUCE_SCATTER, ZERO_ALL_GATHER, ZERO_REDUCE,
                                    ZERO_BROADCAST};
    static const int64_t apart[] = {4096, 4096, 4096, 0};
    *random = oracle_mix(*random);
    zero_algorithm algorithm = (zero_algorithm)(*random % ZERO_ALGORITHMS);
    zero_collective_kind kind = (zero_collective_kind)pick(random, COUNT(kinds), kinds);
    zero_collective_spec spec = vary_spec(algorithm, kind, layout->size, random);
    spec.in_apart = (size_t)pick(random, COUNT(apart), apart);
    spec.out_apart = (size_t)pick(random, COUNT(apart), apart);
    spec.on_device = !spec.one_out && toss(random) && toss(random);
    spec.in_place = spec.on_device && !zero_collective_sums(kind) && toss(random);
    return spec;
}

static zero_traffic sum_of(const zero_steps *steps)
{
    zero_traffic sum = {0};
    for (int64_t i = 0; i < steps->n; i++) zero_steps_count(steps, &steps->list[i], &sum);
    return sum;
}

/* Two collectives in turn share a memo: now alike, now not. */
static void check_rank(const zero_layout *layout, int rank, zero_collective_spec spec,
                       zero_traffic_memo *memo, int *done)
{
    zero_steps steps;
    zero_traffic alone, again;
    zero_status st = zero_steps_init(&steps, &spec, layout, rank);
    assert_int_equal(zero_collective_traffic(&spec, layout, rank, &alone), st);
    assert_int_equal(zero_collective_traffic_again(memo, &spec, layout, rank, &again), st);
    if (st != ZERO_OK) return;
    zero_traffic sum = sum_of(&steps);
    assert_memory_equal(&alone, &sum, sizeof sum);
    assert_memory_equal(&again, &sum, sizeof sum);
    zero_steps_destroy(&steps);
    ++*done;
}

TEST(counting_gives_the_sum_over_the_list)
{
    int done = 0;
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        uint64_t random = trial;
        zero_traffic_memo memo = {0};
        zero_layout layout = vary_layout(&random);
        zero_collective_spec spec = vary(&layout, &random), other = vary(&layout, &random);
        zero_collective_spec longer = spec;
        vary_sizes(&longer, &random);
        random = oracle_mix(random);
        int rank = (int)(random % (uint64_t)layout.size);
        check_rank(&layout, rank, spec, &memo, &done);
        check_rank(&layout, rank, longer, &memo, &done);
        check_rank(&layout, rank, other, &memo, &done);
        check_rank(&layout, (rank + 1) % layout.size, spec, &memo, &done);
        zero_layout_destroy(&layout);
    }
    assert_true(done > TRIALS); /* others were refused */
}

TEST(equal_layouts_are_equal_however_they_were_made)
{
    for (int size = 1; size <= 70; size++)
        for (int nodes = 1; nodes <= size; nodes++) {
            zero_layout blocks, ids;
            assert_ok(zero_layout_init_blocks(&blocks, size, nodes));
            assert_ok(zero_layout_init(&ids, size, blocks.node_of));
            assert_int_equal(blocks.largest, ids.largest);
            assert_int_equal(blocks.subtrees, ids.subtrees);
            assert_int_equal(blocks.fewest_subtrees, ids.fewest_subtrees);
            assert_int_equal(blocks.most_subtrees, ids.most_subtrees);
            assert_memory_equal(blocks.first, ids.first, (size_t)nodes * sizeof(int));
            zero_layout_destroy(&ids);
            zero_layout_destroy(&blocks);
        }
}

/* A million ranks: what a list of their steps moves, without the list. */
TEST(a_million_ranks_are_counted)
{
    enum { RANKS = 1 << 20, NODES = RANKS / 8, COUNT = 1000 };
    zero_layout layout;
    zero_traffic t;
    zero_collective_spec spec = {.kind = ZERO_REDUCE_SCATTER,
                                 .algorithm = ZERO_ALGORITHM_P2P,
                                 .count = COUNT,
                                 .stride = COUNT,
                                 .in_apart = 4096,
                                 .max_chunk = 64};
    assert_ok(zero_layout_init_blocks(&layout, RANKS, NODES));
    assert_ok(zero_collective_traffic(&spec, &layout, 12345, &t));
    assert_int_equal(t.bytes_sent[ZERO_ACROSS], (RANKS - 8) * INT64_C(4) * COUNT);
    assert_int_equal(t.bytes_sent[ZERO_INSIDE], 7 * 4 * COUNT);
    assert_int_equal(t.messages_received[ZERO_ACROSS], (RANKS - 8) * INT64_C(16));
    spec.algorithm = ZERO_ALGORITHM_HIER;
    assert_ok(zero_collective_traffic(&spec, &layout, 12345, &t));
    assert_int_equal(t.bytes_sent[ZERO_ACROSS], (NODES - 1) * INT64_C(4) * COUNT);
    assert_int_equal(t.messages_sent[ZERO_ACROSS], (NODES - 1) * INT64_C(16));
    assert_int_equal(t.messages_sent[ZERO_INSIDE], 0);
    zero_layout_destroy(&layout);
}

/* Likewise where devices of a node reach each other: what each node sends and gets passes PCIe once. */
TEST(a_million_devices_are_counted)
{
    enum { RANKS = 1 << 20, NODES = RANKS / 8, COUNT = 1000 };
    zero_layout layout;
    zero_traffic t;
    zero_collective_spec spec = {.kind = ZERO_REDUCE_SCATTER,
                                 .algorithm = ZERO_ALGORITHM_HIER,
                                 .count = COUNT,
                                 .stride = COUNT,
                                 .in_apart = 4096,
                                 .out_apart = 4096,
                                 .max_chunk = 64,
                                 .on_device = true,
                                 .direct = true};
    assert_ok(zero_layout_init_blocks(&layout, RANKS, NODES));
    assert_ok(zero_collective_traffic(&spec, &layout, 12345, &t));
    assert_int_equal(t.bytes_fetched, NODES * INT64_C(4) * COUNT);
    assert_int_equal(t.bytes_stored, 4 * COUNT);
    spec.kind = ZERO_ALL_GATHER;
    assert_ok(zero_collective_traffic(&spec, &layout, 12345, &t));
    assert_int_equal(t.bytes_fetched, 4 * COUNT);
    assert_int_equal(t.bytes_stored, (NODES - 1) * INT64_C(4) * COUNT);
    zero_layout_destroy(&layout);
}
