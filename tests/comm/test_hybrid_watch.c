/* The watchdog, the check and the progress thread of a family with shard groups and replica groups:
 * T = 1, R = 2, K = 3 on 6 ranks, and T = R = K = 2 on 8 ranks. */
#define TEST_HAS_MAIN
#include "comm/divide.h"

#include "base/clock.h"
#include "comm/check.h"
#include "comm/launch.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "support/family_watch.h"
#include "support/late.h"

typedef struct {
    int n;
    family_group parts[ZERO_FAMILY_PARTS]; /* [n] all groups but the whole */
    family_group *shard, *replicas;
} family;

static int set_up_family(void **state)
{
    static family f;
    if (set_up(state) != 0 || (test_size != 6 && test_size != 8)) return 1;
    if (zero_comm_divide(&world, test_size == 8 ? 2 : 1, 2, 1) != ZERO_OK) return 1;
    f.n = world.n_parts;
    for (int i = 0; i < f.n; i++) f.parts[i] = family_open(&world.parts[i]);
    f.shard = &f.parts[f.n - 2];
    f.replicas = &f.parts[f.n - 1];
    assert_all(f.shard->comm == zero_comm_shard(&world));
    assert_all(f.replicas->comm == zero_comm_replicas(&world));
    *state = &f;
    return 0;
}

static int tear_down_family(void **state)
{
    family *f = *state;
    for (int i = 0; i < f->n; i++) family_close(&f->parts[i]);
    return tear_down(state);
}

/* True if the last rank is in this group, too. */
static bool is_with_last(const zero_comm *group)
{
    return zero_member_beside(&group->member, test_size - 1).first == group->member.first;
}

/* ---- the check ---- */

/* The last rank's barrier compares in one part after the other. This rank meets it in the parts
 * before `end` to which both belong. */
static void meet_last_before(const family_group *end, family *f)
{
    zero_operation barrier =
        zero_operation_control(ZERO_OPERATION_BARRIER, world.control_sequence, 0, -1);
    for (family_group *g = f->parts; g != end; g++)
        if (g->comm->check && is_with_last(g->comm))
            assert_ok(zero_compare(g->comm, &barrier));
}

/* The last rank leaves out a collective of the group, and goes on to a barrier. */
static void skip_one_of(family *f, family_group *g, const char *place)
{
    char theirs[ZERO_OPERATION_TEXT], expected[400];
    all_ok(zero_check_start(&world));
    describe(g->comm, ZERO_REDUCE_SCATTER, 2, theirs);
    snprintf(expected, sizeof expected,
             "rank %d began barrier %d, the others %s: ranks must", test_size - 1,
             (int)world.control_sequence, theirs);
    family_job j = make(g, ZERO_REDUCE_SCATTER, 2, 0);
    bool differs = is_with_last(g->comm);
    if (!differs) meet_last_before(g, f);
    zero_status st = am_last() ? zero_comm_barrier(&world)
                               : zero_collective_begin(&j.op, j.in, j.out, j.staging);
    assert_all(st == (differs ? ZERO_ERR_INVALID : ZERO_OK));
    assert_all(!differs || (says(expected) && says(place)));
    if (!differs) assert_ok(zero_collective_wait(&j.op));
    family_destroy(&j);
}

TEST(a_rank_that_skips_a_reduction_is_named_with_its_shard_group)
{
    family *f = *state;
    skip_one_of(f, f->shard,
                test_size == 6 ? " in the shard group of ranks 4-5:"
                               : " in the shard group of ranks 5,7:");
}

TEST(a_rank_that_skips_an_all_reduce_is_named_with_its_replica_group)
{
    family *f = *state;
    skip_one_of(f, f->replicas,
                test_size == 6 ? " in the replica group of ranks 1,3,5:"
                               : " in the replica group of ranks 3,7:");
}

/* The ZeRO group compares in its shard groups: there the rank meets those that wait for it. */
TEST(a_skipped_reduction_is_found_by_what_zero_groups_do)
{
    family *f = *state;
    zero_comm *data = zero_comm_data(&world);
    char expected[32];
    int64_t sum = 1;
    all_ok(zero_check_start(&world));
    assert_all(data == &world || !data->check);
    snprintf(expected, sizeof expected, "sum %d (8 bytes)", (int)data->control_sequence);
    family_job j = make(f->shard, ZERO_REDUCE_SCATTER, 2, 0);
    bool differs = is_with_last(f->shard->comm);
    zero_status st = am_last() ? zero_comm_sum(data, 1, &sum)
                               : zero_collective_begin(&j.op, j.in, j.out, j.staging);
    assert_all(st == (differs ? ZERO_ERR_INVALID : ZERO_OK));
    assert_all(!differs || (says(expected) && says("of group 2 (p2p")));
    if (!differs) assert_ok(zero_collective_wait(&j.op));
    family_destroy(&j);
}

/* The last shard group differs from the others, which shows when replica groups compare. */
TEST(what_zero_groups_begin_is_compared_among_replicas)
{
    const family *f = *state;
    zero_comm *data = zero_comm_data(&world);
    int64_t sum = 1;
    bool any, votes = f->replicas->comm->rank == f->replicas->comm->size - 1;
    all_ok(zero_check_start(&world));
    all_ok(zero_comm_sum(data, 1, &sum));
    assert_all(sum == data->size);
    zero_status st = votes ? zero_comm_any(data, true, &any) : zero_comm_sum(data, 1, &sum);
    assert_all(st == ZERO_ERR_INVALID);
    assert_all(says("vote") && says("sum"));
}

/* ---- the watchdog ---- */

static zero_status wait_or_be_told(family_job *j)
{
    zero_status st = zero_collective_wait(&j->op);
    zero_failure told = zero_failure_keep(st);
    assert_true(st == ZERO_OK || st == ZERO_ERR_STALLED);
    if (st != ZERO_OK) late_tell();
    if (st != ZERO_OK) assert_ok(late_wait(&j->op));
    return zero_failure_restore(&told);
}

/* The last rank comes late to the sum over its replicas. The others go on to their shard groups, and
 * then to their TP groups, where they wait for it or for each other. Returns whether this rank's wait
 * failed. */
static bool come_late_to_an_all_reduce(family *f, double limit)
{
    family_group *groups[] = {f->replicas, f->shard, &f->parts[0]};
    zero_failure told = {.status = ZERO_OK};
    double end = zero_clock_seconds() + 1.7 * limit;
    bool heard = false;
    while (am_last() && late_goes_on(end, &heard))
        assert_ok(zero_collective_poll(f->shard->comm));
    for (int i = 0; i < (test_size == 8 ? 3 : 2); i++) {
        family_job j = make(groups[i], ZERO_REDUCE_SCATTER, 7 + i, 0);
        family_begin(&j);
        zero_status st = wait_or_be_told(&j);
        if (st != ZERO_OK) told = zero_failure_keep(st);
        assert_true(family_is_right(&j));
        family_destroy(&j);
    }
    late_end();
    return zero_failure_restore(&told) == ZERO_ERR_STALLED;
}

TEST(one_rank_says_who_is_late_for_an_all_reduce)
{
    static const char *const six[] = {
        "; rank 5 is behind. State:",
        "s 1,3: waiting for reduce-scatter 0 of group 7 in the replica group of ranks "
        "1,3,5",
        "s 0,2,4: waiting for reduce-scatter 0 of group 8 in their shard groups"};
    static const char *const eight[] = {
        "; rank 7 is behind. State:",
        "rank 3: waiting for reduce-scatter 0 of group 7 in the replica group of ranks 3,7",
        "s 1,5: waiting for reduce-scatter 0 of group 8 in their shard groups",
        "s 0,2,4,6: waiting for reduce-scatter 0 of JOIN 9 in their TP groups"};
    family *f = *state;
    all_ok(zero_watch_start(&world, 2.0));
    bool is_told = come_late_to_an_all_reduce(f, 2.0);
    int told = is_told, in_all = 0;
    MPI_Allreduce(&told, &in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_all(in_all == 1);
    for (int i = 0; i < (test_size == 8 ? 4 : 3); i++)
        assert_all(!is_told || says(test_size == 8 ? eight[i] : six[i]));
}

/* ---- polls, the thread, and all helpers ---- */

static void fill_all(family *f, family_job jobs[], int unit)
{
    for (int i = 0; i < f->n; i++)
        jobs[i] = make(&f->parts[i], ZERO_REDUCE_SCATTER, unit, 0);
}

static bool any_is_active(const family *f, const family_job jobs[])
{
    bool any = false;
    for (int i = 0; i < f->n; i++) any = is_active(&jobs[i]) || any;
    return any;
}

static void end_all(const family *f, family_job jobs[])
{
    bool right = !any_is_active(f, jobs);
    assert_all(right);
    for (int i = 0; i < f->n; i++) right = family_is_right(&jobs[i]) && right;
    assert_all(right);
    for (int i = 0; i < f->n; i++) family_destroy(&jobs[i]);
}

TEST(a_poll_of_any_group_moves_all)
{
    family *f = *state;
    for (int polled = 0; polled < f->n; polled++) {
        double seconds = 0.0, end = zero_clock_seconds() + 30.0;
        family_job jobs[ZERO_FAMILY_PARTS];
        fill_all(f, jobs, polled);
        for (int i = 0; i < f->n; i++) family_begin(&jobs[i]);
        while (any_is_active(f, jobs) && zero_clock_seconds() < end)
            assert_ok(zero_collective_poll_timed(f->parts[polled].comm, &seconds));
        assert_all(seconds > 0.0);
        end_all(f, jobs);
    }
    assert_all(f->replicas->comm->largest_gap <= 0.0 && f->shard->comm->advanced == 0);
}

/* Each group alone wakes the thread, too. */
TEST(one_thread_moves_the_whole_family)
{
    family *f = *state;
    all_ok(zero_progress_start(&world, 1e-3));
    for (int first = 0; first <= f->n; first++) {
        int n = first == f->n ? f->n : 1;
        family_job jobs[ZERO_FAMILY_PARTS];
        fill_all(f, jobs, first);
        for (int i = 0; i < n; i++) family_begin(&jobs[(first + i) % f->n]);
        for (int naps = 0; naps < 600 && any_is_active(f, jobs); naps++) sleep_for(0.05);
        assert_all(!any_is_active(f, jobs));
        for (int i = 0; i < n; i++) assert_all(family_is_right(&jobs[(first + i) % f->n]));
        for (int i = 0; i < f->n; i++) family_destroy(&jobs[i]);
        sleep_for(0.02); /* the thread goes to sleep, and is woken again */
    }
}

static void run_with_helpers(family *f, int unit)
{
    bool any;
    all_ok(zero_watch_start(&world, 10.0));
    all_ok(zero_progress_start(&world, 1e-3));
    all_ok(zero_check_start(&world));
    assert_all(zero_check_start(&world) == ZERO_ERR_INVALID);
    for (int i = 0; i < f->n; i++) run(&f->parts[i], ZERO_REDUCE_SCATTER, unit);
    all_ok(zero_comm_any(zero_comm_data(&world), false, &any));
    all_ok(zero_comm_barrier(&world));
}

TEST(helpers_start_and_stop_again)
{
    family *f = *state;
    for (int i = 0; i < 3; i++) {
        run_with_helpers(f, i);
        assert_all(f->shard->comm->check && f->replicas->comm->check);
        if (i == 2) return; /* they end with the group */
        all_ok(zero_comm_stop_helpers(&world));
        assert_all(!f->shard->comm->check && !f->replicas->comm->check);
        for (int p = 0; p < f->n; p++) run(&f->parts[p], ZERO_ALL_GATHER, i);
    }
}

/* Shard groups of one rank have nothing to compare; the check runs in the replica groups. */
TEST(the_check_of_groups_of_one_rank_stops_too)
{
    bool any;
    zero_comm group;
    all_ok(zero_comm_world(&group));
    all_ok(zero_comm_divide(&group, 1, 1, 1));
    all_ok(zero_check_start(&group));
    assert_all(!zero_comm_shard(&group)->check && zero_comm_replicas(&group)->check);
    zero_status st =
        am_last() ? zero_comm_any(&group, true, &any) : zero_comm_barrier(&group);
    assert_all(st == ZERO_ERR_INVALID && says("vote"));
    all_ok(zero_check_stop(&group));
    assert_all(!zero_comm_replicas(&group)->check);
    zero_comm_destroy(&group);
}

int main(int argc, char **argv)
{
    around.before = set_up_family;
    around.after = tear_down_family;
    if (zero_launch_start_threaded(&argc, &argv) != ZERO_OK) return 1;
    test_begin(&argc, &argv);
    return test_end(run_here(NULL, NULL));
}
