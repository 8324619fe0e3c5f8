/* Collectives share adapters, the memory of a rank, and turns; and how much they take is
 * estimated. */
#include "simulation/limits.h"
#include "simulation/step_lists.h"
#include "support/exchange_run.h"

#define RANKS    16
#define ELEMENTS 500000

static const zero_link_rate rate = {.latency = 0.0, .bandwidth = 1e9};
static const zero_link_rate infinite = {.latency = 0.0, .bandwidth = INFINITY};

static zero_collective_spec make_spec(zero_algorithm algorithm, zero_collective_kind kind)
{
    return (zero_collective_spec){.kind = kind,
                                  .algorithm = algorithm,
                                  .type = ZERO_BF16,
                                  .result = ZERO_BF16,
                                  .count = ELEMENTS,
                                  .stride = ELEMENTS,
                                  .in_apart = 1,
                                  .out_apart = 1,
                                  .in_turn = true,
                                  .unit = ZERO_NO_UNIT};
}

static zero_layout layout_of_nodes(int ranks, int nodes)
{
    zero_layout layout;
    assert_ok(zero_layout_init_blocks(&layout, ranks, nodes));
    return layout;
}

static zero_network_input network_of(const zero_layout *layout)
{
    return (zero_network_input){
        .layout = layout, .across = rate, .inside = infinite, .adapter = INFINITY};
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * b)) print_error("%.9g s, expected %.9g s\n", a, b);
    assert_true(fabs(a - b) <= 1e-6 * b);
}

TEST(an_adapter_of_half_the_rate_takes_twice_as_long)
{
    zero_layout layout = layout_of_nodes(RANKS, 4);
    for (int kind = 0; kind <= ZERO_ALL_GATHER; kind++) {
        zero_network_input network = network_of(&layout);
        zero_collective_spec spec =
            make_spec(ZERO_ALGORITHM_HIER, (zero_collective_kind)kind);
        double alone = run_alone(&network, INFINITY, &spec);
        network.adapter = 4 * rate.bandwidth;
        assert_near(run_alone(&network, INFINITY, &spec), alone);
        network.adapter = 2 * rate.bandwidth;
        assert_near(run_alone(&network, INFINITY, &spec), 2.0 * alone);
    }
    zero_layout_destroy(&layout);
}

/* Each rank reads a piece of all neighbours and writes one; or reads and writes all pieces. */
TEST(arithmetic_takes_the_bytes_of_its_operands)
{
    zero_layout layout = layout_of_nodes(RANKS, 1);
    zero_network_input network = network_of(&layout);
    zero_collective_spec sums = make_spec(ZERO_ALGORITHM_SHM, ZERO_REDUCE_SCATTER);
    zero_collective_spec copies = make_spec(ZERO_ALGORITHM_SHM, ZERO_ALL_GATHER);
    assert_near(run_alone(&network, 1e9, &sums), (RANKS + 1) * 2.0 * ELEMENTS / 1e9);
    assert_near(run_alone(&network, 1e9, &copies), RANKS * 4.0 * ELEMENTS / 1e9);
    network.inside = rate; /* first all is read, then added */
    assert_near(run_alone(&network, 1e9, &sums),
                ((RANKS - 1) + (RANKS + 1)) * 2.0 * ELEMENTS / 1e9);
    zero_layout_destroy(&layout);
}

/* ---- groups ---- */

/* Seconds until the collectives of two groups have ended: of ranks 0 and 1 on node 0 with 2 and 3
 * on node 1, each local rank with its counterpart. */
static double run_two_groups(double adapter)
{
    exchange_run run;
    zero_layout world = layout_of_nodes(4, 2), pair = layout_of_nodes(2, 2);
    zero_network_input network = network_of(&world);
    zero_collective_spec spec = make_spec(ZERO_ALGORITHM_P2P, ZERO_ALL_GATHER);
    int group[2], lists[2];
    network.adapter = adapter;
    run_open(&run, &network, INFINITY);
    for (int i = 0; i < 2; i++) {
        assert_ok(zero_exchanges_add_group(run.x, (int[]){i, i + 2}, &pair, &group[i]));
        assert_ok(zero_exchanges_add_lists(run.x, group[i], &spec, &lists[i]));
        for (int member = 0; member < 2; member++)
            run_begin(&run, group[i], 0, lists[i], member);
    }
    assert_int_equal(lists[0], lists[1]);
    double seconds = run_all(&run);
    run_close(&run);
    zero_layout_destroy(&world);
    zero_layout_destroy(&pair);
    return seconds;
}

TEST(groups_share_adapters)
{
    assert_near(run_two_groups(INFINITY), 2.0 * ELEMENTS / 1e9);
    assert_near(run_two_groups(1e9), 4.0 * ELEMENTS / 1e9);
}

/* ---- turns ---- */

/* The time when the member's first of two gathers is over, both begun at once. */
static double first_of_two(bool in_turn, double *both)
{
    exchange_run run;
    zero_event event;
    zero_layout layout = layout_of_nodes(4, 4);
    zero_network_input network = network_of(&layout);
    zero_collective_spec spec = make_spec(ZERO_ALGORITHM_P2P, ZERO_ALL_GATHER);
    double first = 0.0;
    int lists;
    spec.in_turn = in_turn;
    spec.max_chunk = ELEMENTS / 100; /* more chunks than a rank may have in flight */
    run_open(&run, &network, INFINITY);
    int group = run_group(&run, &layout);
    assert_ok(zero_exchanges_add_lists(run.x, group, &spec, &lists));
    for (int call = 0; call < 2; call++)
        for (int r = 0; r < 4; r++) run_begin(&run, group, call, lists, r);
    while (zero_events_next(&run.events, &event)) {
        if (event.kind == ZERO_EVENT_NETWORK)
            zero_network_happens(zero_exchanges_network(run.x), &event);
        if (event.kind == ZERO_EVENT_RANK) run_look(&run, event.which);
        if (first == 0.0 && zero_exchange_is_over(run.x, group, 0, 0))
            first = run.events.now;
    }
    *both = run.end;
    run_close(&run);
    zero_layout_destroy(&layout);
    return first;
}

TEST(a_collective_in_turn_sends_after_the_one_before_it)
{
    double both, alone = 3 * 2.0 * ELEMENTS / 1e9;
    assert_true(fabs(first_of_two(true, &both) - alone) < 0.1 * alone);
    assert_near(both, 2.0 * alone);
    assert_true(first_of_two(false, &both) > 1.8 * alone);
    assert_near(both, 2.0 * alone);
}

/* ---- before ---- */

static int64_t bytes_of_lists(const zero_collective_spec *spec, const zero_layout *layout)
{
    zero_step_lists lists = {0};
    int set;
    int64_t bytes = 0;
    assert_ok(zero_step_lists_add(&lists, spec, layout, &set));
    for (int64_t i = 0; i < lists.by_hash.capacity; i++)
        for (const zero_queued *q = lists.by_hash.table[i].first; q; q = q->next) {
            const zero_packed_list *list = (const zero_packed_list *)q;
            bytes += list->n * (int64_t)sizeof *list->steps;
        }
    zero_step_lists_destroy(&lists);
    return bytes + layout->size * (int64_t)sizeof(int32_t);
}

static int64_t count_messages(const zero_collective_spec *spec, const zero_layout *layout)
{
    exchange_run run;
    zero_network_input network = network_of(layout);
    int lists;
    network.inside = rate;
    run_open(&run, &network, INFINITY);
    int group = run_group(&run, layout);
    assert_ok(zero_exchanges_add_lists(run.x, group, spec, &lists));
    for (int r = 0; r < layout->size; r++) run_begin(&run, group, 0, lists, r);
    run_all(&run);
    int64_t messages = zero_network_messages(zero_exchanges_network(run.x));
    run_close(&run);
    return messages;
}

/* Within a third above: the last chunk and lists that are found to be equal count as others do. */
TEST(estimates_are_no_less_than_what_comes)
{
    static const int shapes[][2] = {{2, 1},   {7, 1},  {16, 1}, {5, 5},
                                    {16, 16}, {16, 4}, {24, 3}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int a = 0; a < ZERO_ALGORITHMS; a++)
            for (int kind = 0; kind <= ZERO_ALL_GATHER; kind++) {
                zero_layout layout = layout_of_nodes(shapes[i][0], shapes[i][1]);
                zero_collective_spec spec =
                    make_spec((zero_algorithm)a, (zero_collective_kind)kind);
                int64_t messages, bytes;
                bool works = a != ZERO_ALGORITHM_MPI &&
                             (a != ZERO_ALGORITHM_SHM || layout.n_nodes == 1);
                if (works) {
                    assert_ok(zero_exchange_estimate(&spec, &layout, &messages, &bytes));
                    int64_t come = count_messages(&spec, &layout);
                    assert_true(come <= messages && 3 * messages <= 4 * come + 300);
                    assert_true(bytes_of_lists(&spec, &layout) <= bytes + 200);
                }
                zero_layout_destroy(&layout);
            }
}

/* At once: 16384 ranks with p2p send more than 2^28 messages. */
TEST(large_exchanges_are_estimated_without_their_lists)
{
    zero_layout layout = layout_of_nodes(16384, 1024);
    int64_t messages, bytes;
    zero_collective_spec spec = make_spec(ZERO_ALGORITHM_P2P, ZERO_REDUCE_SCATTER);
    spec.count = spec.stride = 64;
    assert_ok(zero_exchange_estimate(&spec, &layout, &messages, &bytes));
    assert_true(messages == (int64_t)16384 * 16383);
    spec.algorithm = ZERO_ALGORITHM_HIER;
    assert_ok(zero_exchange_estimate(&spec, &layout, &messages, &bytes));
    assert_true(messages < (int64_t)16384 * 1024 * 3 && bytes < 16 << 20);
    zero_layout_destroy(&layout);
}

TEST(what_is_not_simulated_is_refused)
{
    zero_step_lists lists = {0};
    int set;
    int64_t messages, bytes;
    zero_layout layout = layout_of_nodes(4, 2);
    zero_collective_spec mpi = make_spec(ZERO_ALGORITHM_MPI, ZERO_ALL_GATHER);
    zero_collective_spec device = make_spec(ZERO_ALGORITHM_P2P, ZERO_ALL_GATHER);
    device.on_device = true;
    assert_int_equal(zero_step_lists_add(&lists, &mpi, &layout, &set),
                     ZERO_ERR_UNSUPPORTED);
    assert_int_equal(zero_step_lists_add(&lists, &device, &layout, &set),
                     ZERO_ERR_UNSUPPORTED);
    assert_int_equal(zero_exchange_estimate(&mpi, &layout, &messages, &bytes),
                     ZERO_ERR_UNSUPPORTED);
    zero_step_lists_destroy(&lists);
    zero_layout_destroy(&layout);
}
