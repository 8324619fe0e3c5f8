/* A node's disk: fair shares, a rank's transfers in order. */

#include "support/test.h"

#include <math.h>

#include "simulation/network.h"

enum { RANKS = 5, FILES = 3, MOST = 32 };

typedef struct {
    zero_layout layout;
    zero_events events;
    zero_network *network;
    int n, rank[MOST];
    double time[MOST]; /* of the ends, in their order */
} fixture;

static void note_end(void *arg, int64_t rank)
{
    fixture *f = arg;
    assert_in_range(f->n, 0, MOST - 1);
    f->rank[f->n] = (int)rank;
    f->time[f->n++] = f->events.now;
}

static void open_disks(fixture *f, int nodes)
{
    *f = (fixture){.n = 0};
    assert_ok(zero_layout_init_blocks(&f->layout, RANKS, nodes));
    const zero_network_input input = {.layout = &f->layout,
                                      .across = {0.0, 1e9},
                                      .inside = {0.0, INFINITY},
                                      .adapter = INFINITY};
    assert_ok(zero_network_open(&f->network, &input, &f->events, note_end, f));
}

static void begin(fixture *f, int rank, double seconds)
{
    zero_network_transfer(f->network, rank, seconds, rank);
}

static void close_disks(fixture *f)
{
    assert_int_equal(zero_network_messages(f->network), 0);
    assert_true(zero_network_busiest(f->network).busy == 0.0);
    zero_network_close(f->network);
    zero_events_destroy(&f->events);
    zero_layout_destroy(&f->layout);
}

static void run_to_the_end(fixture *f)
{
    zero_event event;
    while (zero_events_next(&f->events, &event)) zero_network_happens(f->network, &event);
}

static void assert_end(const fixture *f, int k, int rank, double time)
{
    assert_int_equal(f->rank[k], rank);
    assert_true(fabs(f->time[k] - time) < 1e-12);
}

/* Half each, until rank 0 has its second. */
TEST(two_ranks_share_evenly)
{
    fixture f;
    open_disks(&f, 1);
    begin(&f, 0, 1.0);
    begin(&f, 1, 2.0);
    run_to_the_end(&f);
    assert_int_equal(f.n, 2);
    assert_end(&f, 0, 0, 2.0);
    assert_end(&f, 1, 1, 3.0);
    close_disks(&f);
}

TEST(a_ranks_transfers_are_in_order)
{
    fixture f;
    open_disks(&f, 1);
    begin(&f, 0, 1.0);
    begin(&f, 0, 1.0);
    begin(&f, 4, 3.0);
    run_to_the_end(&f);
    assert_int_equal(f.n, 3);
    assert_end(&f, 0, 0, 2.0);
    assert_end(&f, 1, 0, 4.0);
    assert_end(&f, 2, 4, 5.0);
    close_disks(&f);
}

TEST(nodes_have_disks_of_their_own)
{
    fixture f;
    open_disks(&f, RANKS);
    for (int r = 0; r < RANKS; r++) begin(&f, r, 1.0 + r);
    run_to_the_end(&f);
    assert_int_equal(f.n, RANKS);
    for (int r = 0; r < RANKS; r++) assert_end(&f, r, r, 1.0 + r);
    close_disks(&f);
}

/* All work done takes as long as its sum, whoever begins what and when. */
TEST(a_disk_never_rests_while_there_is_work)
{
    fixture f;
    open_disks(&f, 1);
    double sum = 0.0;
    for (int r = 0; r < RANKS; r++)
        for (int file = 0; file < FILES; file++) {
            double seconds = 0.25 + (r * 7 + file * 5) % 4;
            begin(&f, r, seconds);
            sum += seconds;
        }
    run_to_the_end(&f);
    assert_int_equal(f.n, RANKS * FILES);
    assert_true(fabs(f.time[f.n - 1] - sum) < 1e-9);
    close_disks(&f);
}
