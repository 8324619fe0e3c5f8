/* One collective alone takes what the alpha-beta model says, and a broadcast the filling of its
 * chain besides. */
#include "lists/algorithm.h"
#include "support/exchange_run.h"

static const zero_link_rate rate = {.latency = 1e-6, .bandwidth = 12.5e9};
static const int64_t counts[] = {1, 1000, 130000, 2000000};

typedef struct {
    int ranks, nodes;
} shape;

static const shape one_node[] = {{2, 1}, {3, 1}, {4, 1}, {7, 1}, {16, 1}, {33, 1}, {64, 1}};
static const shape one_rank_each[] = {{2, 2}, {3, 3}, {5, 5}, {8, 8}, {33, 33}, {64, 64}};
static const shape several_each[] = {{4, 2},  {7, 2},  {8, 4},   {12, 4},
                                     {16, 2}, {24, 8}, {60, 10}, {64, 8}};

static zero_collective_spec make_spec(zero_algorithm algorithm, zero_collective_kind kind,
                                      int64_t count, const zero_layout *layout)
{
    return (zero_collective_spec){.kind = kind,
                                  .algorithm = algorithm,
                                  .type = ZERO_BF16,
                                  .result = ZERO_BF16,
                                  .count = count,
                                  .stride = count,
                                  .root = layout->size / 2,
                                  .in_apart = 1,
                                  .out_apart = 1,
                                  .unit = ZERO_NO_UNIT};
}

/* ---- alpha-beta ---- */

/* A rank's seconds, as plan_time.h counts: on several nodes, what travels between them. */
static double seconds_of(const zero_traffic *t, const zero_layout *layout)
{
    zero_volume v = zero_traffic_total(t);
    if (layout->n_nodes > 1)
        v = (zero_volume){t->bytes_sent[ZERO_ACROSS], t->bytes_received[ZERO_ACROSS],
                          t->messages_sent[ZERO_ACROSS], t->messages_received[ZERO_ACROSS]};
    double messages = fmax((double)v.messages_sent, (double)v.messages_received);
    double bytes = fmax((double)v.bytes_sent, (double)v.bytes_received);
    return messages * rate.latency + bytes / rate.bandwidth;
}

/* The seconds of the rank that moves most. */
static double alpha_beta(const zero_collective_spec *spec, const zero_layout *layout)
{
    double most = 0.0;
    for (int r = 0; r < layout->size; r++) {
        zero_traffic t;
        assert_ok(zero_collective_traffic(spec, layout, r, &t));
        most = fmax(most, seconds_of(&t, layout));
    }
    return most;
}

/* Messages that the last rank of a broadcast's chain waits for, one after the other. */
static int count_hops(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (spec->algorithm == ZERO_ALGORITHM_SHM) return 1;
    if (spec->algorithm == ZERO_ALGORITHM_HIER)
        return layout->n_nodes > 1 ? layout->n_nodes - 1 : 1;
    int hops = 0;
    for (int i = 1; i < layout->size; i++) {
        int from = (spec->root + i - 1) % layout->size,
            to = (spec->root + i) % layout->size;
        hops += layout->n_nodes == 1 || layout->node_of[from] != layout->node_of[to];
    }
    return hops;
}

/* A chain is full when the first chunk has passed all hops but one. */
static double filling(const zero_collective_spec *spec, const zero_layout *layout)
{
    int64_t chunk = zero_algorithm_get(spec->algorithm)->chunk(spec, layout);
    double bytes =
        (double)zero_min(chunk, spec->count) * (double)zero_type_size(spec->type);
    if (spec->kind != ZERO_BROADCAST) return 0.0;
    return (count_hops(spec, layout) - 1) * (rate.latency + bytes / rate.bandwidth);
}

/* ---- the law ---- */

/* Where several nodes count, what stays within one takes no time. */
static zero_network_input network_of(const zero_layout *layout)
{
    zero_link_rate infinite = {.latency = 0.0, .bandwidth = INFINITY};
    return (zero_network_input){.layout = layout,
                                .across = rate,
                                .inside = layout->n_nodes > 1 ? infinite : rate,
                                .adapter = INFINITY};
}

static bool takes(const zero_collective_spec *spec, const zero_layout *layout, double most)
{
    zero_network_input network = network_of(layout);
    double simulated = run_alone(&network, INFINITY, spec);
    double expected = alpha_beta(spec, layout) + filling(spec, layout);
    double ratio = simulated / expected;
    if (0.98 <= ratio && ratio <= most) return true;
    fprintf(
        stderr, "%s %s of %lld, %d ranks on %d nodes: %g s, expected %g s, ratio %.4f\n",
        zero_algorithm_name(spec->algorithm), zero_collective_kind_name(spec->kind),
        (long long)spec->count, layout->size, layout->n_nodes, simulated, expected, ratio);
    return false;
}

static bool all_take(zero_algorithm algorithm, const shape *s, double most)
{
    zero_layout layout;
    bool right = true;
    assert_ok(zero_layout_init_blocks(&layout, s->ranks, s->nodes));
    for (int kind = 0; kind < ZERO_ALL_REDUCE; kind++)
        for (size_t i = 0; i < COUNT(counts); i++) {
            zero_collective_spec spec =
                make_spec(algorithm, (zero_collective_kind)kind, counts[i], &layout);
            right = takes(&spec, &layout, most) && right;
        }
    zero_layout_destroy(&layout);
    return right;
}

static void shapes_take(zero_algorithm algorithm, const shape *shapes, size_t n,
                        double most)
{
    bool right = true;
    for (size_t i = 0; i < n; i++) right = all_take(algorithm, &shapes[i], most) && right;
    assert_true(right);
}

TEST(on_one_node)
{
    shapes_take(ZERO_ALGORITHM_P2P, one_node, COUNT(one_node), 1.02);
    shapes_take(ZERO_ALGORITHM_SHM, one_node, COUNT(one_node), 1.02);
    shapes_take(ZERO_ALGORITHM_HIER, one_node, COUNT(one_node), 1.02);
}

TEST(between_nodes_of_one_rank)
{
    shapes_take(ZERO_ALGORITHM_P2P, one_rank_each, COUNT(one_rank_each), 1.02);
    shapes_take(ZERO_ALGORITHM_HIER, one_rank_each, COUNT(one_rank_each), 1.02);
}

/* p2p does not know of nodes. Messages within them end at once, so ranks drift apart in the rounds
 * until their requests are used up, and small collectives lose a little. */
TEST(between_nodes_of_several_ranks)
{
    shapes_take(ZERO_ALGORITHM_HIER, several_each, COUNT(several_each), 1.02);
    shapes_take(ZERO_ALGORITHM_P2P, several_each, COUNT(several_each), 1.06);
}
