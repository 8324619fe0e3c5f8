/* A node's disk: fair shares, a rank's transfers in order. */

#include "support/test.h"

#include "simulation/disk.h"

enum { RANKS = 5, FILES = 3, MOST = 32 };

typedef struct {
    zero_layout layout;
    zero_events events;
    zero_disks *disks;
    int n, rank[MOST];
    double time[MOST]; /* of the ends, in their order */
} fixture;

static void note_end(void *arg, int rank)
{
    fixture *f = arg;
    assert_in_range(f->n, 0, MOST - 1);
    f->rank[f->n] = rank;
    f->time[f->n++] = f->events.now;
}

static void open_disks(fixture *f, int nodes)
{
    *f = (fixture){.n = 0};
    assert_ok(zero_layout_init_blocks(&f->layout, RANKS, nodes));
    assert_ok(zero_disks_open(&f->disks, &f->layout, FILES, &f->events, note_end, f));
}

static void close_disks(fixture *f)
{
    zero_disks_close(f->disks);
    zero_events_destroy(&f->events);
    zero_layout_destroy(&f->layout);
}

static void run_to_the_end(fixture *f)
{
    zero_event event;
    while (zero_events_next(&f->events, &event))
        if (event.kind == ZERO_EVENT_DISK) zero_disk_happens(f->disks, &event);
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
    zero_disk_begin(f.disks, 0, 0, 1.0);
    zero_disk_begin(f.disks, 1, 0, 2.0);
    assert_false(zero_disk_is_over(f.disks, 0, 0));
    assert_true(zero_disk_is_over(f.disks, 0, 1));
    run_to_the_end(&f);
    assert_int_equal(f.n, 2);
    assert_end(&f, 0, 0, 2.0);
    assert_end(&f, 1, 1, 3.0);
    assert_true(zero_disk_is_over(f.disks, 0, 0));
    close_disks(&f);
}

TEST(a_ranks_transfers_are_in_order)
{
    fixture f;
    open_disks(&f, 1);
    zero_disk_begin(f.disks, 0, 2, 1.0);
    zero_disk_begin(f.disks, 0, 0, 1.0);
    zero_disk_begin(f.disks, 4, 1, 3.0);
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
    for (int r = 0; r < RANKS; r++) zero_disk_begin(f.disks, r, 0, 1.0 + r);
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
            zero_disk_begin(f.disks, r, file, seconds);
            sum += seconds;
        }
    run_to_the_end(&f);
    assert_int_equal(f.n, RANKS * FILES);
    assert_true(fabs(f.time[f.n - 1] - sum) < 1e-9);
    close_disks(&f);
}
