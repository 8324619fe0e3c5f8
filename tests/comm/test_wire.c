/* Links between nodes, and the messages that they are given. tests/multinode has slow ones. */
#include "comm/wire.h"

#include "support/test_world.h"

static int64_t message(double latency, double rate)
{
    const zero_wire wire = {latency, rate};
    return zero_wire_message(&wire);
}

TEST(slow_links_have_messages_that_fill_them)
{
    assert_int_equal(message(0.0, 0.0), 0);
    assert_int_equal(message(1e-5, 1.2e7), 61440); /* 100 Mbit/s */
    assert_int_equal(message(1e-5, 1.2e8), 61440);
    assert_int_equal(message(1e-6, 1.2e10), 0);
    /* 1 Gbit/s to another town: 8 messages are as much as passes in 20 ms. */
    assert_int_equal(message(5e-3, 1.2e8), 300000);
    assert_int_equal(message(50e-3, 1.2e8), 524288);
}

TEST(one_node_has_no_links)
{
    assert_ok(zero_comm_pretend_blocks(&world, 1));
    assert_ok(zero_wire_try(&world));
    assert_all(world.wire.rate == 0.0 && world.wire.latency == 0.0);
}

/* Every rank a node; two nodes, of which the ring has only the first ranks. */
TEST(all_ranks_know_the_same_links)
{
    for (int nodes = 2; nodes <= test_size; nodes += test_size > 3 ? test_size - 2 : 1) {
        assert_ok(zero_comm_pretend_blocks(&world, nodes));
        assert_ok(zero_wire_try(&world));
        assert_all(world.wire.rate > 0.0 && world.wire.latency > 0.0);
        double all[2 * 16];
        assert_ok(zero_comm_all_gather_doubles(&world, 2, &world.wire.latency, all));
        for (int r = 0; r < test_size; r++)
            assert_all(all[2 * r] == all[0] && all[2 * r + 1] == all[1]);
    }
}
