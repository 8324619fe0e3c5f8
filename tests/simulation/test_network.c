/* The laws of links. */

#include "support/test.h"

#include "simulation/network.h"
#include "support/tree_oracle.h"

#define RANKS   16
#define NODES   8
#define MEGA    1000000
#define COOKIES 4096

/* 1 MB/s between nodes and 10 MB/s within them. */
typedef struct {
    zero_layout layout;
    zero_network_input input;
    zero_events events;
    zero_network *network;
    double arrived[COOKIES]; /* when; 0: not yet */
    int n_arrived;
} wires;

static void note(void *arg, int64_t cookie)
{
    wires *w = arg;
    assert_true(w->arrived[cookie] == 0.0);
    w->arrived[cookie] = w->events.now;
    w->n_arrived++;
}

static void open_wires(wires *w, double latency)
{
    *w = (wires){0};
    assert_ok(zero_layout_init_blocks(&w->layout, RANKS, NODES));
    w->input = (zero_network_input){.layout = &w->layout,
                                    .across = {latency, 1e6},
                                    .inside = {latency, 1e7},
                                    .adapter = INFINITY,
                                    .switch_ratio = 1.0};
}

static void plug(wires *w)
{
    assert_ok(zero_network_open(&w->network, &w->input, &w->events, note, w));
}

static void close_wires(wires *w)
{
    assert_false(zero_network_failed(w->network));
    zero_network_close(w->network);
    zero_events_destroy(&w->events);
    zero_layout_destroy(&w->layout);
}

/* Until `end`, or until nothing happens any more. Returns the time of the last event. */
static double run_until(wires *w, double end)
{
    zero_event event;
    while (w->events.heap.n > 0 && w->events.heap.list[0].key < end) {
        assert_true(zero_events_next(&w->events, &event));
        zero_network_happens(w->network, &event);
    }
    return w->events.now;
}

/* Lets time pass although nothing happens. */
static void wait_until(wires *w, double time)
{
    zero_event event;
    run_until(w, time);
    zero_events_add(&w->events, time, ZERO_EVENT_RANK, 0);
    assert_true(zero_events_next(&w->events, &event));
    assert_true(event.kind == ZERO_EVENT_RANK);
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1.0 + fabs(b))))
        print_error("%.12g, expected %.12g\n", a, b);
    assert_true(fabs(a - b) <= 1e-9 * (1.0 + fabs(b)));
}

/* ---- one link ---- */

TEST(messages_alone_take_latency_each_and_their_bytes)
{
    for (int to_one = 0; to_one < 2; to_one++) {
        wires w;
        open_wires(&w, 0.25);
        plug(&w);
        for (int i = 0; i < 6; i++)
            zero_network_send(w.network, 0, to_one ? 8 : 2 + 2 * i, (i + 1) * MEGA, i);
        assert_near(run_until(&w, INFINITY), 6 * 0.25 + 21.0);
        assert_int_equal(w.n_arrived, 6);
        assert_int_equal(zero_network_messages(w.network), 6);
        close_wires(&w);
    }
}

TEST(messages_between_the_same_ranks_follow_each_other)
{
    wires w;
    open_wires(&w, 0.5);
    plug(&w);
    for (int i = 0; i < 5; i++) zero_network_send(w.network, 3, 9, MEGA, i);
    run_until(&w, INFINITY);
    for (int i = 0; i < 5; i++) assert_near(w.arrived[i], (i + 1) * 1.5);
    close_wires(&w);
}

/* k messages over one link take k times as long each, whichever end they share. */
TEST(connections_share_a_link_evenly)
{
    for (int k = 1; k <= 7; k++)
        for (int to_one = 0; to_one < 2; to_one++) {
            wires w;
            open_wires(&w, 0.0);
            plug(&w);
            for (int i = 0; i < k; i++)
                zero_network_send(w.network, to_one ? 2 + 2 * i : 0, to_one ? 0 : 2 + 2 * i,
                                  MEGA, i);
            run_until(&w, INFINITY);
            for (int i = 0; i < k; i++) assert_near(w.arrived[i], k);
            close_wires(&w);
        }
}

/* The first has the link for a second, then half of it, and all again when the other has gone. */
TEST(a_message_that_comes_later_takes_its_share)
{
    wires w;
    open_wires(&w, 0.0);
    plug(&w);
    zero_network_send(w.network, 0, 2, 4 * MEGA, 0);
    wait_until(&w, 1.0);
    zero_network_send(w.network, 0, 4, MEGA, 1);
    run_until(&w, INFINITY);
    assert_near(w.arrived[1], 3.0);
    assert_near(w.arrived[0], 5.0);
    close_wires(&w);
}

TEST(directions_and_other_links_do_not_meet)
{
    wires w;
    open_wires(&w, 0.0);
    plug(&w);
    for (int r = 0; r < RANKS; r++)
        zero_network_send(w.network, r, (r + 2) % RANKS, MEGA, r);
    for (int r = 0; r < RANKS; r++)
        zero_network_send(w.network, r, r ^ 1, 10 * MEGA, RANKS + r); /* within nodes */
    run_until(&w, INFINITY);
    for (int i = 0; i < 2 * RANKS; i++) assert_near(w.arrived[i], 1.0);
    close_wires(&w);
}

TEST(infinite_links_take_no_time)
{
    wires w;
    open_wires(&w, 0.0);
    w.input.across.bandwidth = INFINITY;
    plug(&w);
    wait_until(&w, 3.0);
    for (int i = 0; i < 9; i++) zero_network_send(w.network, 0, 2 + i % 3, MEGA, i);
    assert_near(run_until(&w, INFINITY), 3.0);
    assert_int_equal(w.n_arrived, 9);
    close_wires(&w);
}

/* Where numbers of seconds are coarser than what a message takes. */
TEST(messages_end_late_in_a_long_run)
{
    wires w;
    open_wires(&w, 0.0);
    plug(&w);
    wait_until(&w, 1e9);
    for (int i = 0; i < 200; i++)
        zero_network_send(w.network, i % 8, 8 + i % 5, 1 + i % 3, i);
    run_until(&w, INFINITY);
    assert_int_equal(w.n_arrived, 200);
    assert_near(w.events.now, 1e9);
    close_wires(&w);
}

TEST(reads_pay_no_latency)
{
    wires w;
    open_wires(&w, 0.5);
    plug(&w);
    zero_network_read(w.network, 1, 0, 10 * MEGA, 0);
    zero_network_read(w.network, ZERO_NETWORK_SEVERAL, 3, 20 * MEGA, 1);
    run_until(&w, INFINITY);
    assert_near(w.arrived[0], 1.0);
    assert_near(w.arrived[1], 2.0);
    close_wires(&w);
}

/* ---- links that ranks share ---- */

TEST(ranks_of_a_node_share_its_adapter)
{
    wires w;
    open_wires(&w, 0.25);
    w.input.adapter = 0.5e6; /* a quarter of what its two ranks could */
    plug(&w);
    zero_network_send(w.network, 0, 4, MEGA, 0);
    zero_network_send(w.network, 1, 6, MEGA, 1);
    zero_network_send(w.network, 8, 10, MEGA, 2);
    zero_network_send(w.network, 4, 0, MEGA, 3); /* the other direction */
    run_until(&w, INFINITY);
    assert_near(w.arrived[0], 4.0);
    assert_near(w.arrived[1], 4.0);
    assert_near(w.arrived[2], 2.0);
    assert_near(w.arrived[3], 2.0);
    zero_link_use use = zero_network_busiest(w.network);
    assert_true(use.kind == ZERO_LINK_NODE_OUT && use.which == 0);
    assert_near(use.busy, 4.0);
    assert_int_equal(use.bytes, 2 * MEGA);
    close_wires(&w);
}

/* Two switches of four nodes. Eight ranks send up at once; what stays below one is not slower. */
TEST(an_uplink_is_oversubscribed)
{
    for (int adapters = 0; adapters < 2; adapters++) {
        wires w;
        open_wires(&w, 0.0);
        w.input.switch_nodes = 4;
        w.input.switch_ratio = 2.0;
        if (adapters) w.input.adapter = 2e6;
        plug(&w);
        for (int r = 0; r < 8; r++) zero_network_send(w.network, r, 8 + r, MEGA, r);
        run_until(&w, INFINITY);
        for (int r = 0; r < 8; r++) assert_near(w.arrived[r], 2.0);
        zero_link_use use = zero_network_busiest(w.network);
        assert_true(use.kind == ZERO_LINK_SWITCH_UP && use.which == 0);
        assert_int_equal(use.bytes, 8 * MEGA);
        zero_network_send(w.network, 0, 6, MEGA, 8);
        assert_near(run_until(&w, INFINITY), 3.0);
        close_wires(&w);
    }
}

TEST(use_is_forgotten)
{
    wires w;
    open_wires(&w, 0.0);
    plug(&w);
    zero_network_send(w.network, 0, 2, 3 * MEGA, 0);
    wait_until(&w, 1.0);
    zero_network_forget(w.network);
    run_until(&w, INFINITY);
    assert_near(zero_network_busiest(w.network).busy, 2.0);
    wait_until(&w, 10.0);
    assert_near(zero_network_busiest(w.network).busy, 2.0);
    zero_network_forget(w.network);
    assert_true(zero_network_busiest(w.network).busy == 0.0);
    close_wires(&w);
}

/* ---- anything ---- */

static void send_randomly(wires *w)
{
    uint64_t random = 11;
    for (int i = 0; i < COOKIES; i++) {
        random = oracle_mix(random);
        int from = (int)(random % RANKS), to = (from + 1 + (int)(random >> 8 & 7)) % RANKS;
        wait_until(w, w->events.now + (double)(random >> 20 & 63) / 16.0);
        zero_network_send(w->network, from, to, (int64_t)(random >> 32 & 0xfffff), i);
    }
    run_until(w, INFINITY);
    assert_int_equal(w->n_arrived, COOKIES);
}

TEST(equal_messages_arrive_at_equal_times)
{
    wires w[2];
    for (int i = 0; i < 2; i++) {
        open_wires(&w[i], 0.001);
        w[i].input.adapter = 1.5e6;
        w[i].input.switch_nodes = 3;
        w[i].input.switch_ratio = 1.5;
        plug(&w[i]);
        send_randomly(&w[i]);
    }
    assert_memory_equal(w[0].arrived, w[1].arrived, sizeof w[0].arrived);
    assert_int_equal(w[0].events.added, w[1].events.added);
    for (int i = 0; i < 2; i++) close_wires(&w[i]);
}
