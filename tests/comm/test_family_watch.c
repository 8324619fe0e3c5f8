/* The watchdog, the check and the progress thread of a family. faults.sh has the cases that end a
 * job; test_verdict.c has the watchdog's judgement. */
#define TEST_HAS_MAIN
#include "comm/divide.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/check.h"
#include "comm/launch.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "support/family_watch.h"
#include "support/late.h"

/* ---- a family with T = 2 and its helpers ---- */

/* The last rank's neighbour in its TP group. */
static bool am_next_to_last(void)
{
    return test_rank == test_size - 2;
}

typedef struct {
    family_group tp, data;
} family;

static int set_up_family(void **state)
{
    static family f;
    if (set_up(state) != 0 || test_size < 4 || test_size % 2 != 0) return 1;
    if (zero_comm_divide(&world, 2, 0, 1) != ZERO_OK) return 1;
    f.tp = family_open(zero_comm_tp(&world));
    f.data = family_open(zero_comm_data(&world));
    *state = &f;
    return 0;
}

static int tear_down_family(void **state)
{
    family *f = *state;
    family_close(&f->tp);
    family_close(&f->data);
    return tear_down(state);
}

/* ---- the check ---- */

/* The last rank goes on to the next JOIN. The check finds it there, before any data moves. */
TEST(a_rank_that_skips_a_join_is_named_at_its_next_one)
{
    family *f = *state;
    char its[ZERO_OPERATION_TEXT], theirs[ZERO_OPERATION_TEXT], expected[700];
    all_ok(zero_check_start(&world));
    run(&f->tp, ZERO_ALL_GATHER, 1);
    run(&f->data, ZERO_REDUCE_SCATTER, 1);
    describe(f->tp.comm, ZERO_ALL_GATHER, 3, its);
    describe(f->tp.comm, ZERO_ALL_GATHER, 2, theirs);
    snprintf(expected, sizeof expected, "rank %d began %s, the others %s: ranks must",
             test_rank / 2 * 2 + 1, its, theirs);
    family_job j = make(&f->tp, ZERO_ALL_GATHER, am_last() ? 3 : 2, 0);
    bool differs = am_last() || am_next_to_last();
    zero_status st = zero_collective_begin(&j.op, j.in, j.out, j.staging);
    assert_all(st == (differs ? ZERO_ERR_INVALID : ZERO_OK));
    assert_all(!differs || (says(expected) && says("of JOIN 3 (p2p") && !j.op.is_active));
    char group[64];
    snprintf(group, sizeof group, "in the TP group of ranks %d-%d:", test_size - 2,
             test_size - 1);
    assert_all(!differs || says(group));
    if (!differs) assert_ok(zero_collective_wait(&j.op));
    family_destroy(&j);
}

/* The last rank goes on to what all ranks do. */
TEST(a_rank_that_skips_a_join_meets_its_neighbours_in_the_next_barrier)
{
    family *f = *state;
    char theirs[ZERO_OPERATION_TEXT], expected[400];
    all_ok(zero_check_start(&world));
    describe(f->tp.comm, ZERO_REDUCE_SCATTER, 2, theirs);
    snprintf(expected, sizeof expected,
             "rank %d began barrier %d, the others %s: ranks must", test_size - 1,
             (int)world.control_sequence, theirs);
    family_job j = make(&f->tp, ZERO_REDUCE_SCATTER, 2, 0);
    zero_status st = am_last() ? zero_comm_barrier(&world)
                               : zero_collective_begin(&j.op, j.in, j.out, j.staging);
    bool differs = am_last() || am_next_to_last();
    assert_all(st == (differs ? ZERO_ERR_INVALID : ZERO_OK));
    assert_all(!differs || says(expected));
    if (!differs) assert_ok(zero_collective_wait(&j.op));
    family_destroy(&j);
}

TEST(another_unit_in_a_zero_group_is_named_by_ranks_of_all)
{
    family *f = *state;
    char expected[64], group[64];
    bool mine = test_rank % 2 == 1;
    all_ok(zero_check_start(&world));
    family_job j = make(&f->data, ZERO_REDUCE_SCATTER, am_last() ? 8 : 7, 0);
    zero_status st = zero_collective_begin(&j.op, j.in, j.out, j.staging);
    assert_all(st == (mine ? ZERO_ERR_INVALID : ZERO_OK));
    snprintf(expected, sizeof expected, "rank %d began reduce-scatter 0 of group 8",
             test_size - 1);
    snprintf(group, sizeof group,
             "in the ZeRO group of ranks 1,3%s:", test_size == 4 ? "" : ",5");
    assert_all(!mine || (says(expected) && says(group)));
    if (!mine) assert_ok(zero_collective_wait(&j.op));
    family_destroy(&j);
}

/* A difference between TP groups shows when ZeRO groups compare. */
TEST(what_all_ranks_begin_is_compared_among_all)
{
    bool any;
    all_ok(zero_check_start(&world));
    all_ok(zero_comm_barrier(&world));
    zero_status st = test_rank >= test_size - 2 ? zero_comm_any(&world, true, &any)
                                                : zero_comm_barrier(&world);
    assert_all(st == ZERO_ERR_INVALID);
    assert_all(says("began vote"));
}

TEST(errors_in_a_part_name_ranks_of_all)
{
    const family *f = *state;
    char expected[64];
    zero_status mine = am_last() ? zero_fail(ZERO_ERR_IO, "no file") : ZERO_OK;
    bool shared = test_rank % 2 == 1;
    zero_status st = zero_agree(f->data.comm, mine);
    assert_all(st == (shared ? ZERO_ERR_IO : ZERO_OK));
    snprintf(expected, sizeof expected, "rank %d: no file", test_size - 1);
    assert_all(!shared || says(expected));
}

/* ---- the watchdog ---- */

/* The last rank comes late to a JOIN; it polls its ZeRO group, which answers for it. The others go
 * on to their ZeRO groups. Returns whether this rank's wait failed. */
static bool come_late_to_a_join(family *f, double limit)
{
    family_job join = make(&f->tp, ZERO_REDUCE_SCATTER, 2, 0);
    family_job sum = make(&f->data, ZERO_REDUCE_SCATTER, 7, 0);
    double end = zero_clock_seconds() + 1.7 * limit;
    bool heard = false;
    while (am_last() && late_goes_on(end, &heard))
        assert_ok(zero_collective_poll(f->data.comm));
    family_job *jobs[] = {&join, &sum};
    zero_failure told = {.status = ZERO_OK};
    for (int i = 0; i < 2; i++) {
        family_begin(jobs[i]);
        zero_status st = zero_collective_wait(&jobs[i]->op);
        assert_true(st == ZERO_OK || st == ZERO_ERR_STALLED);
        if (st == ZERO_OK) continue;
        told = zero_failure_keep(st);
        late_tell();
        assert_ok(late_wait(&jobs[i]->op));
    }
    assert_true(family_is_right(&join) && family_is_right(&sum));
    family_destroy(&join);
    family_destroy(&sum);
    late_end();
    return zero_failure_restore(&told) == ZERO_ERR_STALLED;
}

TEST(one_rank_says_who_is_late_for_a_join)
{
    family *f = *state;
    char expected[128];
    all_ok(zero_watch_start(&world, 1.6));
    bool is_told = come_late_to_a_join(f, 1.6);
    int told = is_told, in_all = 0;
    MPI_Allreduce(&told, &in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_all(in_all == 1);
    snprintf(expected, sizeof expected, "; rank %d is behind. State:", test_size - 1);
    assert_all(!is_told || says(expected));
    snprintf(
        expected, sizeof expected,
        "rank %d: waiting for reduce-scatter 0 of JOIN 2 in the TP group of ranks %d-%d",
        test_size - 2, test_size - 2, test_size - 1);
    assert_all(!is_told || says(expected));
    assert_all(!is_told || says("waiting for reduce-scatter 0 of group 7 in"));
    snprintf(expected, sizeof expected, "rank %d: computing after", test_size - 1);
    assert_all(!is_told || says(expected));
}

/* The next-to-last rank waits for a JOIN, longer than the limit, while reductions of its ZeRO
 * group end now and then. */
TEST(progress_in_one_group_counts_for_all)
{
    family *f = *state;
    const double nap = 0.5;
    enum { SUMS = FAMILY_SLOTS };
    family_job sums[SUMS], join = make(&f->tp, ZERO_ALL_GATHER, 1, 0);
    for (int i = 0; i < SUMS; i++) sums[i] = make(&f->data, ZERO_REDUCE_SCATTER, i, i);
    all_ok(zero_watch_start(&world, 3.2 * nap));
    bool is_slow = test_rank == 0, is_late = am_last();
    if (!is_late) family_begin(&join);
    double end = zero_clock_seconds() + (SUMS + 1) * nap;
    for (int i = 0; i < SUMS; i++) {
        if (is_slow) sleep_for(nap);
        family_begin(&sums[i]);
        if (is_slow) assert_ok(zero_collective_wait(&sums[i].op));
    }
    while (is_late && zero_clock_seconds() < end) {
        assert_ok(zero_collective_poll(&world));
        sleep_for(0.002);
    }
    if (is_late) family_begin(&join);
    assert_ok(zero_collective_wait(&join.op));
    bool right = family_is_right(&join);
    for (int i = 0; i < SUMS; i++) {
        assert_ok(zero_collective_wait(&sums[i].op));
        right = family_is_right(&sums[i]) && right;
        family_destroy(&sums[i]);
    }
    family_destroy(&join);
    assert_all(right); /* ranks that are done wait here, without a watchdog */
}

TEST(waits_after_files_are_longer_in_a_part_too)
{
    const family *f = *state;
    const double limit = 0.4;
    all_ok(zero_watch_start(&world, limit));
    if (am_last()) sleep_for(1.7 * limit);
    all_ok(zero_agree_after_files(f->tp.comm, ZERO_OK));
    if (am_last()) sleep_for(1.7 * limit);
    all_ok(zero_comm_barrier_after_files(f->data.comm));
    assert_all(world.patience <= 1.0);
}

/* ---- the thread; that polls and the thread move all groups is shown by test_hybrid_watch.c ---- */

/* While this rank holds the lock of one group, the thread moves none of the others. */
TEST(the_family_has_one_lock)
{
    family *f = *state;
    family_job j = make(&f->data, ZERO_REDUCE_SCATTER, 1, 0);
    all_ok(zero_progress_start(&world, 1e-3));
    zero_thread_lock(f->tp.comm);
    family_begin(&j);
    double polled = world.last_poll;
    sleep_for(0.05);
    bool is_left_alone = world.last_poll <= polled && is_active(&j);
    zero_thread_unlock(f->tp.comm);
    assert_all(is_left_alone);
    assert_ok(zero_collective_wait(&j.op));
    family_destroy(&j);
}

/* Begins and waits for both, often, in opposite orders; with a thread that polls. */
TEST(a_thread_and_waits_share_the_work)
{
    family *f = *state;
    family_job jobs[2] = {make(&f->tp, ZERO_REDUCE_SCATTER, 1, 0),
                          make(&f->data, ZERO_REDUCE_SCATTER, 2, 0)};
    int first = (test_rank / 2 + test_rank) % 2;
    bool right = true;
    all_ok(zero_progress_start(&world, 1e-4));
    for (uint64_t t = 0; t < 100; t++) {
        for (int i = 0; i < 2; i++) family_fill(&jobs[i], t);
        family_begin(&jobs[first]);
        family_dawdle(oracle_bits(t, test_rank, 0));
        family_begin(&jobs[!first]);
        assert_ok(zero_collective_wait(&jobs[first].op));
        assert_ok(zero_collective_wait(&jobs[!first].op));
        right = right && family_is_right(&jobs[0]) && family_is_right(&jobs[1]);
    }
    assert_all(right);
    for (int i = 0; i < 2; i++) family_destroy(&jobs[i]);
}

/* Helpers start and stop in any order, several times; the last ones end with the group. */
TEST(helpers_start_and_stop_in_any_order)
{
    family *f = *state;
    for (int i = 0; i < 6; i++) {
        if (i % 2 == 0) all_ok(zero_progress_start(&world, 1e-3));
        all_ok(zero_watch_start(&world, 5.0));
        all_ok(zero_check_start(&world));
        if (i % 2 == 1) all_ok(zero_progress_start(&world, 1e-3));
        assert_all(zero_check_start(&world) == ZERO_ERR_INVALID);
        run(&f->tp, ZERO_ALL_GATHER, i);
        run(&f->data, ZERO_REDUCE_SCATTER, i);
        all_ok(zero_comm_barrier(&world));
        if (i == 5) return;
        if (i % 3 == 0) all_ok(zero_check_stop(&world));
        if (i % 3 == 1) all_ok(zero_watch_stop(&world));
        if (i % 3 == 2) zero_progress_stop(&world);
        run(&f->tp, ZERO_REDUCE_SCATTER, i);
        all_ok(zero_comm_stop_helpers(&world));
        assert_all(!world.watch && !world.thread && !f->tp.comm->check);
    }
}

int main(int argc, char **argv)
{
    around.before = set_up_family;
    around.after = tear_down_family;
    if (zero_launch_start_threaded(&argc, &argv) != ZERO_OK) return 1;
    test_begin(&argc, &argv);
    return test_end(run_here(NULL, NULL));
}
