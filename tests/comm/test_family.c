/* Families: a group divided into TP, ZeRO, shard and replica groups, which make progress together. */
#define TEST_HAS_MAIN
#include "comm/divide.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/check.h"
#include "comm/collective.h"
#include "comm/launch.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "lists/small.h"
#include "support/family_job.h"

/* ---- divide ---- */

/* The group has the ranks that lists/member.h says, in their order. */
static void check_part(zero_comm *part)
{
    const zero_member *m = &part->member;
    int64_t sum = test_rank, expected = 0;
    for (int i = 0; i < m->size; i++) expected += zero_member_rank(m, i);
    all_ok(zero_comm_sum(part, 1, &sum));
    assert_all(part->size == m->size && sum == expected);
    assert_all(zero_member_rank(m, part->rank) == test_rank);
}

static void check_parts(const zero_division *d)
{
    all_ok(zero_comm_divide(&world, d->tp, d->shard, d->pp));
    zero_comm *const parts[ZERO_FAMILY_PARTS] = {&world,
                                                 zero_comm_tp(&world),
                                                 zero_comm_data(&world),
                                                 zero_comm_shard(&world),
                                                 zero_comm_replicas(&world),
                                                 zero_comm_pipe(&world)};
    for (int p = ZERO_TP_GROUP; p < ZERO_FAMILY_PARTS; p++) {
        bool is_there = parts[p] && parts[p]->member.part == p;
        assert_all(is_there == zero_division_has(d, (zero_family_part)p));
        if (is_there) check_part(parts[p]);
    }
    zero_comm_destroy(&world);
    all_ok(zero_comm_world(&world));
}

TEST(each_part_of_a_division_has_its_ranks)
{
    for (int tp = 1; tp <= test_size; tp++)
        for (int pp = 1; pp <= test_size / tp; pp++)
            for (int shard = 1; shard <= test_size / tp / pp; shard++) {
                const zero_division d = {test_size, tp, shard, pp};
                if (test_size % (tp * pp) == 0 &&
                    zero_can_shard(test_size / tp / pp, shard))
                    check_parts(&d);
            }
}

/* True if this rank has no groups but the world. */
static bool is_alone(void)
{
    return zero_comm_data(&world) == &world && zero_comm_shard(&world) == &world &&
           !zero_comm_tp(&world) && !zero_comm_replicas(&world);
}

TEST(a_group_that_is_not_divided_is_its_own_zero_and_shard_group)
{
    assert_all(is_alone());
    zero_traffic before = world.traffic[ZERO_CONTROL];
    all_ok(zero_comm_divide(&world, 1, 0, 1));
    all_ok(zero_comm_divide(&world, 1, test_size, 1));
    assert_all(memcmp(&before, &world.traffic[ZERO_CONTROL], sizeof before) == 0);
    assert_all(is_alone());
}

TEST(a_shard_group_of_all_zero_ranks_is_the_zero_group)
{
    if (test_size % 2 != 0) return;
    all_ok(zero_comm_divide(&world, 2, test_size / 2, 1));
    assert_all(zero_comm_data(&world)->size == test_size / 2);
    assert_all(zero_comm_shard(&world) == zero_comm_data(&world));
    assert_all(!zero_comm_replicas(&world) && world.n_parts == 2);
}

static void refused(int tp, int shard, const char *why)
{
    assert_all(zero_comm_divide(&world, tp, shard, 1) == ZERO_ERR_INVALID);
    if (!strstr(zero_last_error(), why)) print_error("%s\n", zero_last_error());
    all_told(why);
}

TEST(impossible_divisions_are_refused_with_the_numbers)
{
    char why[96];
    snprintf(why, sizeof why, "%d ranks cannot be divided into TP groups of %d", test_size,
             test_size + 1);
    refused(test_size + 1, 0, why);
    refused(0, 0, "into TP groups of 0");
    assert_all(zero_comm_divide(&world, 1, 0, test_size + 1) == ZERO_ERR_INVALID);
    all_told("pipeline stages of TP groups of 1");
    if (test_size == 1) return;
    all_ok(zero_watch_start(&world, 30.0));
    refused(test_size, 0, "divide it before they start");
    all_ok(zero_watch_stop(&world));
    all_ok(zero_comm_divide(&world, test_size, 0, 1));
    refused(test_size, 0, "is divided already");
    assert_all(zero_comm_divide(zero_comm_tp(&world), test_size, 0, 1) == ZERO_ERR_INVALID);
}

/* Three of six ranks are no subtree: sums over replicas of three would have other bits. */
TEST(impossible_shard_groups_are_refused_with_the_choices)
{
    char why[96];
    snprintf(why, sizeof why, "%d ZeRO ranks cannot be divided into shard groups of %d",
             test_size, test_size + 1);
    refused(1, test_size + 1, why);
    refused(1, -1, "into shard groups of -1");
    refused(test_size, 2, "1 ZeRO ranks cannot be divided into shard groups of 2");
    if (test_size > 3) refused(1, 3, "into shard groups of 3");
    if (test_size == 6) refused(1, 3, "expected one of 1, 2, 6 (6, or a power of two");
    if (test_size == 6) refused(2, 2, "3 ZeRO ranks");
    if (test_size == 8) refused(2, 8, "expected one of 1, 2, 4 (4, or a power of two");
    assert_all(is_alone());
    if (test_size == 1) return;
    all_ok(zero_comm_divide(&world, 1, 1, 1));
    refused(1, 1, "is divided already");
    refused(test_size, 0, "is divided already");
}

TEST(helpers_work_on_the_whole_only)
{
    if (test_size == 1) return;
    bool is_hybrid = test_size == 8;
    int tp = is_hybrid ? 2 : test_size, shard = is_hybrid ? 2 : 0;
    all_ok(zero_comm_divide(&world, tp, shard, 1));
    if (is_hybrid) {
        assert_all(zero_watch_start(zero_comm_shard(&world), 9.0) == ZERO_ERR_INVALID);
        assert_all(zero_check_start(zero_comm_replicas(&world)) == ZERO_ERR_INVALID);
    }
    assert_all(zero_watch_start(zero_comm_tp(&world), 9.0) == ZERO_ERR_INVALID);
    assert_all(zero_check_start(zero_comm_data(&world)) == ZERO_ERR_INVALID);
    all_fail(zero_progress_start(zero_comm_tp(&world), 1e-3), ZERO_ERR_INVALID,
             "the group that was divided");
}

TEST(parts_have_the_nodes_that_the_whole_pretends)
{
    if (test_size < 4 || test_size % 2 != 0) return;
    all_ok(zero_comm_pretend_blocks(&world, 2));
    bool fits = test_size % 4 == 0;
    all_ok(zero_comm_divide(&world, 2, 0, 1));
    assert_all(zero_comm_pretend_blocks(&world, 1) == ZERO_ERR_INVALID);
    const zero_layout *tp = &zero_comm_tp(&world)->layout;
    const zero_layout *data = &zero_comm_data(&world)->layout;
    int crosses = !fits && test_rank / 2 == test_size / 4;
    assert_all(tp->n_nodes == 1 + crosses);
    assert_all(data->n_nodes == 2);
    for (int r = 0; r < data->size; r++)
        assert_all(data->node_of[r] == world.layout.node_of[2 * r + test_rank % 2]);
    int64_t counted = zero_comm_tp(&world)->traffic[ZERO_CONTROL].bytes_sent[ZERO_INSIDE];
    assert_all(counted == 0);
}

TEST(replicas_are_on_several_nodes_and_shard_groups_on_one)
{
    if (test_size != 8) return;
    for (int tp = 1; tp <= 2; tp++) {
        all_ok(zero_comm_pretend_blocks(&world, 2));
        all_ok(zero_comm_divide(&world, tp, 4 / tp, 1));
        assert_all(zero_comm_shard(&world)->layout.n_nodes == 1);
        const zero_layout *replicas = &zero_comm_replicas(&world)->layout;
        assert_all(replicas->size == 2 && replicas->n_nodes == 2);
        const zero_traffic *counted = zero_comm_replicas(&world)->traffic;
        assert_all(counted[ZERO_CONTROL].bytes_sent[ZERO_ACROSS] == 0);
        zero_comm_destroy(&world);
        all_ok(zero_comm_world(&world));
    }
}

/* ---- sums ---- */

TEST(sums_of_integers_count_as_planned)
{
    enum { WORDS = 600000 }; /* more than MPI gets at a time */
    int64_t *words = calloc(WORDS, sizeof *words);
    zero_traffic planned = {0}, moved = world.traffic[ZERO_CONTROL];
    assert_non_null(words);
    for (int64_t i = 0; i < WORDS; i++) words[i] = (i - 7) * (1 + test_rank) * 1000003;
    all_ok(zero_comm_sum(&world, WORDS, words));
    int64_t weight = (int64_t)test_size * (test_size + 1) / 2 * 1000003, wrong = 0;
    for (int64_t i = 0; i < WORDS; i++) wrong += words[i] != (i - 7) * weight;
    assert_all(wrong == 0);
    zero_small_add_reduced(&planned, &world.layout, test_rank, WORDS, sizeof *words);
    zero_traffic_add(&moved, 1, &planned);
    assert_all(memcmp(&moved, &world.traffic[ZERO_CONTROL], sizeof moved) == 0);
    all_ok(zero_comm_sum(&world, 0, words));
    free(words);
}

/* ---- progress ---- */

/* A reduce-scatter in each group of the family but the whole. */
typedef struct {
    int n;
    family_group groups[ZERO_FAMILY_PARTS];
    family_job jobs[ZERO_FAMILY_PARTS];
} jobs;

static void jobs_open(jobs *all, zero_algorithm algorithm)
{
    all->n = world.n_parts;
    for (int i = 0; i < all->n; i++) {
        all->groups[i] = family_open(&world.parts[i]);
        zero_collective_spec spec =
            family_spec(all->groups[i].comm, algorithm, ZERO_REDUCE_SCATTER, i);
        all->jobs[i] = family_make(&all->groups[i], &spec, 0);
    }
}

static void jobs_close(jobs *all)
{
    for (int i = 0; i < all->n; i++) {
        family_destroy(&all->jobs[i]);
        family_close(&all->groups[i]);
    }
}

static void jobs_fill(jobs *all, uint64_t trial)
{
    for (int i = 0; i < all->n; i++) family_fill(&all->jobs[i], trial);
}

static bool jobs_are_right(const jobs *all)
{
    bool right = true;
    for (int i = 0; i < all->n; i++) right = family_is_right(&all->jobs[i]) && right;
    return right;
}

/* The group to which this rank turns first. Neighbours differ in one coordinate (p, j or k), so ranks
 * that move their first one only wait in a circle. */
static int find_first(void)
{
    const zero_comm *tp = zero_comm_tp(&world), *replicas = zero_comm_replicas(&world);
    int sum = zero_comm_shard(&world)->rank + (tp ? tp->rank : 0);
    return (sum + (replicas ? replicas->rank : 0)) % world.n_parts;
}

static bool is_even(int n)
{
    return n >= 4 && n % 2 == 0;
}

static void merge_nothing(void)
{
    zero_tree_span span = {.blocks = 0};
    assert_ok(zero_comm_merge_spans(&world, 1, &span));
}

/* A rank that moves the collective of one group only never ends it: the circle is real. Waits end
 * it, and so does the wait of rank 0 for spans, which the others send once theirs have ended. */
static void meet_in_a_circle(int tp, int shard, bool is_circle)
{
    jobs all;
    bool done = false;
    all_ok(zero_comm_divide(&world, tp, shard, 1));
    jobs_open(&all, ZERO_ALGORITHM_P2P);
    int first = find_first();
    jobs_fill(&all, 1);
    for (int i = 0; i < all.n; i++) family_begin(&all.jobs[(first + i) % all.n]);
    double end = zero_clock_seconds() + 0.3;
    while (zero_clock_seconds() < end)
        assert_ok(zero_collective_progress(&all.jobs[first].op, &done));
    assert_all(!is_circle || !done);
    if (test_rank == 0) merge_nothing();
    for (int i = 0; i < all.n; i++)
        assert_ok(zero_collective_wait(&all.jobs[(first + i) % all.n].op));
    if (test_rank > 0) merge_nothing();
    assert_all(jobs_are_right(&all));
    jobs_close(&all);
    zero_comm_destroy(&world);
    all_ok(zero_comm_world(&world));
}

TEST(waits_move_the_collectives_of_all_groups)
{
    if (is_even(test_size)) meet_in_a_circle(2, 0, test_size == 4);
    if (is_even(test_size)) meet_in_a_circle(1, 2, test_size == 4);
    if (test_size == 8) meet_in_a_circle(2, 2, true);
}

/* Ranks begin in different orders, are late, and wait in different orders. */
static bool run_crosswise(jobs *all, uint64_t trial)
{
    uint64_t random = oracle_bits(trial, test_rank, 0);
    int n = all->n, first = find_first() + ((random >> 50) % 8 == 0);
    int next = (random >> 63) ? 1 : n - 1;
    jobs_fill(all, trial);
    for (int i = 0; i < n; i++) {
        if (i > 0) family_dawdle(random >> (10 * i));
        family_begin(&all->jobs[(first + i * next) % n]);
    }
    for (int i = 0; i < n; i++) {
        family_dawdle(random >> (10 * i + 5));
        assert_ok(zero_collective_wait(&all->jobs[(first + i * next) % n].op));
    }
    bool right = jobs_are_right(all);
    /* A neighbour may still read `in` through a window. */
    assert_ok(zero_comm_barrier(&world));
    return right;
}

static bool is_on_one_node(void)
{
    bool is = true;
    for (int i = 0; i < world.n_parts; i++) is = is && world.parts[i].layout.n_nodes == 1;
    return is;
}

static void run_all_crosswise(int tp, int shard, uint64_t trials)
{
    all_ok(zero_comm_divide(&world, tp, shard, 1));
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        if (a == ZERO_ALGORITHM_SHM && !is_on_one_node()) continue;
        jobs all;
        bool right = true;
        jobs_open(&all, (zero_algorithm)a);
        for (uint64_t t = 0; t < trials; t++) right = run_crosswise(&all, t) && right;
        assert_all(right);
        jobs_close(&all);
    }
    zero_comm_destroy(&world);
    all_ok(zero_comm_world(&world));
}

TEST(ranks_that_turn_to_different_groups_never_wait_in_a_circle)
{
    if (test_size == 8) return; /* below */
    for (int tp = 2; tp < test_size; tp++)
        if (test_size % tp == 0) run_all_crosswise(tp, 0, test_size == 4 ? 200 : 80);
}

/* Shard groups and replica groups; on 8 ranks with TP groups and ZeRO groups, too. */
TEST(ranks_of_hybrid_groups_never_wait_in_a_circle)
{
    if (is_even(test_size)) run_all_crosswise(1, 2, test_size == 4 ? 50 : 15);
    if (test_size == 8) run_all_crosswise(2, 2, 15);
}

/* Two nodes: sums within TP groups stay on a node, those within ZeRO groups cross. */
TEST(ranks_on_two_nodes_never_wait_in_a_circle)
{
    if (!is_even(test_size) || test_size % 4 != 0) return;
    all_ok(zero_comm_pretend_blocks(&world, 2));
    if (test_size == 8)
        run_all_crosswise(2, 2, 10);
    else
        run_all_crosswise(2, 0, 50);
}

int main(int argc, char **argv)
{
    around.before = set_up;
    around.after = tear_down;
    if (zero_launch_start_threaded(&argc, &argv) != ZERO_OK) return 1;
    test_begin(&argc, &argv);
    return test_end(run_here(NULL, NULL));
}
