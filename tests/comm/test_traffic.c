/* Traffic and staging of collectives, against formulas written down here. */
#include "lists/algorithm.h"

#include "support/collective_cases.h"
#include "support/share.h"
#include "support/step_machine.h"

#define ELEMENTS 1000
#define BYTES    (2 * ELEMENTS)
#define CHUNKS   16 /* of at most 64 elements */

static machine_case plain(zero_algorithm algorithm, zero_collective_kind kind,
                          const zero_layout *layout)
{
    zero_collective_spec spec = {.kind = kind,
                                 .algorithm = algorithm,
                                 .type = ZERO_BF16,
                                 .result = ZERO_BF16,
                                 .count = ELEMENTS,
                                 .stride = 1024,
                                 .max_chunk = 64,
                                 .root = layout->size / 2};
    return (machine_case){.layout = layout, .trial = 1, .requests = 32, .spec = spec};
}

static void check_pairwise(const zero_layout *layout, zero_collective_kind kind)
{
    zero_traffic t[16];
    machine_case c = plain(ZERO_ALGORITHM_P2P, kind, layout);
    assert_true(machine_run(&c, t));
    for (int r = 0; r < layout->size; r++) {
        int inside = zero_layout_local_size(layout, r) - 1;
        int64_t others[] = {inside, layout->size - 1 - inside};
        for (int reach = 0; reach < ZERO_REACHES; reach++) {
            assert_int_equal(t[r].bytes_sent[reach], others[reach] * BYTES);
            assert_int_equal(t[r].bytes_received[reach], others[reach] * BYTES);
            assert_int_equal(t[r].messages_sent[reach], others[reach] * CHUNKS);
            assert_int_equal(t[r].messages_received[reach], others[reach] * CHUNKS);
        }
    }
}

TEST(pairs_move_each_piece_once_to_each_other_rank)
{
    for (size_t i = 0; i < COUNT(test_layouts); i++) {
        zero_layout layout = layout_of(test_layouts[i]);
        check_pairwise(&layout, ZERO_REDUCE_SCATTER);
        check_pairwise(&layout, ZERO_ALL_GATHER);
        zero_layout_destroy(&layout);
    }
}

static int64_t sum_all(int size, const zero_traffic *t, zero_reach reach, bool sent,
                       bool messages)
{
    int64_t sum = 0;
    for (int r = 0; r < size; r++) {
        const int64_t *of = sent       ? messages ? t[r].messages_sent : t[r].bytes_sent
                            : messages ? t[r].messages_received
                                       : t[r].bytes_received;
        sum += of[reach];
    }
    return sum;
}

static void check_balance(int size, const zero_traffic *t)
{
    for (int reach = 0; reach < ZERO_REACHES; reach++)
        for (int messages = 0; messages < 2; messages++)
            assert_int_equal(sum_all(size, t, (zero_reach)reach, true, messages),
                             sum_all(size, t, (zero_reach)reach, false, messages));
}

TEST(all_that_is_sent_is_received)
{
    for (size_t i = 0; i < COUNT(test_layouts); i++) {
        zero_layout layout = layout_of(test_layouts[i]);
        for (int run = 0; run < ZERO_COLLECTIVE_KINDS * ZERO_ALGORITHMS; run++) {
            zero_traffic t[16];
            machine_case c =
                plain((zero_algorithm)(run / ZERO_COLLECTIVE_KINDS),
                      (zero_collective_kind)(run % ZERO_COLLECTIVE_KINDS), &layout);
            bool fits = c.spec.algorithm != ZERO_ALGORITHM_SHM || layout.n_nodes == 1;
            if (c.spec.algorithm == ZERO_ALGORITHM_MPI || !fits) continue;
            assert_true(machine_run(&c, t));
            check_balance(layout.size, t);
        }
        zero_layout_destroy(&layout);
    }
}

/* Each link of the chain carries the data once. */
TEST(a_broadcast_visits_each_rank_once)
{
    zero_layout layout = layout_of((node_sizes){2, 3, 2});
    zero_traffic t[16];
    machine_case c = plain(ZERO_ALGORITHM_P2P, ZERO_BROADCAST, &layout);
    assert_true(machine_run(&c, t));
    for (int r = 0; r < layout.size; r++) {
        int64_t sent = t[r].bytes_sent[ZERO_INSIDE] + t[r].bytes_sent[ZERO_ACROSS];
        int64_t received =
            t[r].bytes_received[ZERO_INSIDE] + t[r].bytes_received[ZERO_ACROSS];
        assert_int_equal(sent, (r + 1) % layout.size == c.spec.root ? 0 : BYTES);
        assert_int_equal(received, r == c.spec.root ? 0 : BYTES);
    }
    zero_layout_destroy(&layout);
}

TEST(a_reduce_moves_one_piece_from_each_other_rank_to_the_root)
{
    zero_layout layout = layout_of((node_sizes){2, 3, 2});
    zero_traffic t[16];
    machine_case c = plain(ZERO_ALGORITHM_P2P, ZERO_REDUCE, &layout);
    assert_true(machine_run(&c, t));
    for (int r = 0; r < layout.size; r++) {
        int others = r == c.spec.root ? layout.size - 1 : 0;
        zero_volume v = zero_traffic_total(&t[r]);
        assert_int_equal(v.bytes_sent, r == c.spec.root ? 0 : BYTES);
        assert_int_equal(v.messages_sent, r == c.spec.root ? 0 : CHUNKS);
        assert_int_equal(v.bytes_received, others * BYTES);
        assert_int_equal(v.messages_received, others * CHUNKS);
    }
    zero_layout_destroy(&layout);
}

TEST(windows_move_no_messages_and_each_piece_once)
{
    for (int size = 1; size <= 12; size++)
        for (int kind = 0; kind < ZERO_ALL_REDUCE; kind++) {
            zero_layout layout = layout_of((node_sizes){size});
            zero_traffic t[16];
            machine_case c = plain(ZERO_ALGORITHM_SHM, (zero_collective_kind)kind, &layout);
            assert_true(machine_run(&c, t));
            for (int r = 0; r < size; r++) {
                bool root = r == c.spec.root;
                int all = (size - 1) * BYTES, to = all, from = all;
                if (kind == ZERO_BROADCAST) to = root ? all : 0, from = root ? 0 : BYTES;
                if (kind == ZERO_REDUCE) to = root ? 0 : BYTES, from = root ? all : 0;
                zero_traffic closed = {.bytes_sent = {to}, .bytes_received = {from}};
                assert_memory_equal(&t[r], &closed, sizeof closed);
            }
            zero_layout_destroy(&layout);
        }
}

/* Bytes of one piece of bf16 that leave a node for another: the sums of its subtrees in fp32, the
 * terms of single ranks in bf16. */
static int64_t bytes_of_subtrees(int begin, int size, int first, int n)
{
    if (first + n <= begin || begin + size <= first) return 0;
    if (first <= begin && begin + size <= first + n) return ELEMENTS * (size == 1 ? 2 : 4);
    int left = 1;
    while (2 * left < size) left *= 2;
    return bytes_of_subtrees(begin, left, first, n) +
           bytes_of_subtrees(begin + left, size - left, first, n);
}

static int64_t closed_across(const machine_case *c, int node)
{
    const zero_layout *layout = c->layout;
    int first = layout->first[node], n = layout->first[node + 1] - first;
    switch (c->spec.kind) {
    case ZERO_REDUCE_SCATTER:
        return (layout->size - n) * bytes_of_subtrees(0, layout->size, first, n);
    case ZERO_ALL_GATHER: return (layout->n_nodes - 1) * n * BYTES;
    case ZERO_REDUCE:
        if (node == layout->node_of[c->spec.root]) return 0;
        return bytes_of_subtrees(0, layout->size, first, n);
    case ZERO_BROADCAST:
    case ZERO_ALL_REDUCE: break;
    }
    int next = (node + 1) % layout->n_nodes;
    return next == layout->node_of[c->spec.root] ? 0 : BYTES;
}

static void check_two_levels(const zero_layout *layout, zero_collective_kind kind)
{
    zero_traffic t[16];
    machine_case c = plain(ZERO_ALGORITHM_HIER, kind, layout);
    assert_true(machine_run(&c, t));
    for (int node = 0; node < layout->n_nodes; node++) {
        int first = layout->first[node], n = layout->first[node + 1] - first;
        assert_int_equal(sum_all(n, t + first, ZERO_ACROSS, true, false),
                         closed_across(&c, node));
        assert_int_equal(sum_all(n, t + first, ZERO_INSIDE, true, true), 0);
    }
}

TEST(two_levels_cross_between_nodes_as_little_as_the_tree_allows)
{
    for (size_t i = 0; i < COUNT(test_layouts); i++) {
        zero_layout layout = layout_of(test_layouts[i]);
        for (int kind = 0; kind < ZERO_ALL_REDUCE; kind++)
            check_two_levels(&layout, (zero_collective_kind)kind);
        zero_layout_destroy(&layout);
    }
}

/* ---- staging ---- */

TEST(no_rank_sends_further_ahead_than_the_root_stages)
{
    static const int sizes[] = {2, 3, 9, 100, 1024};
    for (size_t s = 0; s < 2 * COUNT(sizes); s++) {
        int size = sizes[s / 2];
        zero_layout layout;
        zero_steps steps;
        zero_collective_spec spec = {.kind = ZERO_REDUCE, .count = 1 << 20};
        assert_ok(zero_layout_init_blocks(&layout, size, s % 2 ? size : 1));
        assert_ok(zero_steps_init(&steps, &spec, &layout, size - 1));
        size_t staging = zero_collective_staging(&spec, &layout);
        for (int64_t i = 0; i < steps.n; i++) {
            int64_t ahead = (i + 1 - steps.list[i].sent) * steps.chunk * (size - 1);
            assert_int_equal(steps.list[i].kind, ZERO_STEP_SEND);
            assert_true((size_t)ahead * sizeof(float) <= staging);
        }
        zero_steps_destroy(&steps);
        zero_layout_destroy(&layout);
    }
}

static void check_staging(const zero_layout *layout, zero_collective_spec spec)
{
    size_t last = 0;
    spec.stride = 1 << 23;
    for (int64_t count = 0; count < spec.stride; count += 1 + count / 3) {
        spec.count = count;
        size_t staging = zero_collective_staging(&spec, layout);
        assert_true(staging >= last);
        assert_true(staging <= ZERO_COLLECTIVE_STAGING ||
                    !zero_algorithm_get(spec.algorithm)->bounds_staging);
        last = staging;
    }
}

TEST(staging_is_bounded_and_never_shrinks_with_the_count)
{
    static const int sizes[] = {1, 2, 3, 7, 8, 9, 100, 1024, 8191, 8192};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int nodes = 1; nodes <= sizes[s]; nodes = 3 * nodes + (nodes > 1)) {
            zero_layout layout;
            assert_ok(zero_layout_init_blocks(&layout, sizes[s], nodes));
            for (int run = 0; run < 16 * ZERO_ALGORITHMS; run += 3 * TEST_SHARE(3))
                check_staging(
                    &layout, (zero_collective_spec){.algorithm = (zero_algorithm)(run / 16),
                                                    .kind = (zero_collective_kind)(run % 4),
                                                    .type = run & 4 ? ZERO_BF16 : ZERO_FP32,
                                                    .max_chunk = run & 8 ? 1000 : 0});
            zero_layout_destroy(&layout);
        }
}
