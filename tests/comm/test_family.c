/* Families: a group divided into TP groups and ZeRO groups, which make progress together. */
#include "comm/divide.h"

#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/check.h"
#include "comm/collective.h"
#include "comm/launch.h"
#include "comm/progress.h"
#include "comm/small.h"
#include "comm/watch.h"
#include "support/family_job.h"

/* ---- divide ---- */

static void ranks_are_neighbours_in_tp_and_strided_in_zero(void **state)
{
    (void)state;
    for (int tp = 2; tp <= test_size; tp++) {
        if (test_size % tp != 0) continue;
        assert_all(zero_comm_divide(&world, tp) == ZERO_OK);
        zero_comm *t = zero_comm_tp(&world), *d = zero_comm_data(&world);
        assert_all(t->size == tp && t->rank == test_rank % tp);
        assert_all(d->size == test_size / tp && d->rank == test_rank / tp);
        int64_t of_tp = test_rank, of_data = test_rank;
        assert_all(zero_comm_sum(t, 1, &of_tp) == ZERO_OK);
        assert_all(zero_comm_sum(d, 1, &of_data) == ZERO_OK);
        assert_all(of_tp == tp * (test_rank / tp * tp) + tp * (tp - 1) / 2);
        assert_all(of_data ==
                   d->size * (test_rank % tp) + tp * (d->size * (d->size - 1) / 2));
        zero_comm_destroy(&world);
        assert_all(zero_comm_world(&world) == ZERO_OK);
    }
}

static void a_group_that_is_not_divided_is_its_own_zero_group(void **state)
{
    (void)state;
    assert_all(zero_comm_data(&world) == &world && !zero_comm_tp(&world));
    zero_traffic before = world.traffic[ZERO_CONTROL];
    assert_all(zero_comm_divide(&world, 1) == ZERO_OK);
    assert_all(memcmp(&before, &world.traffic[ZERO_CONTROL], sizeof before) == 0);
    assert_all(zero_comm_data(&world) == &world && !zero_comm_tp(&world));
}

static void refused(int tp, const char *why)
{
    assert_all(zero_comm_divide(&world, tp) == ZERO_ERR_INVALID);
    if (!strstr(zero_last_error(), why)) print_error("%s\n", zero_last_error());
    assert_all(strstr(zero_last_error(), why) != NULL);
}

static void impossible_divisions_are_refused_with_the_numbers(void **state)
{
    (void)state;
    char why[96];
    snprintf(why, sizeof why, "%d ranks cannot be divided into TP groups of %d", test_size,
             test_size + 1);
    refused(test_size + 1, why);
    refused(0, "into TP groups of 0");
    if (test_size == 1) return;
    assert_all(zero_watch_start(&world, 30.0) == ZERO_OK);
    refused(test_size, "divide it before they start");
    assert_all(zero_watch_stop(&world) == ZERO_OK);
    assert_all(zero_comm_divide(&world, test_size) == ZERO_OK);
    refused(test_size, "is divided already");
    assert_all(zero_comm_divide(zero_comm_tp(&world), test_size) == ZERO_ERR_INVALID);
}

static void helpers_work_on_the_whole_only(void **state)
{
    (void)state;
    if (test_size == 1) return;
    assert_all(zero_comm_divide(&world, test_size) == ZERO_OK);
    assert_all(zero_watch_start(zero_comm_tp(&world), 9.0) == ZERO_ERR_INVALID);
    assert_all(zero_check_start(zero_comm_data(&world)) == ZERO_ERR_INVALID);
    assert_all(zero_progress_start(zero_comm_tp(&world), 1e-3) == ZERO_ERR_INVALID);
    assert_all(strstr(zero_last_error(), "the group that was divided") != NULL);
}

static void parts_have_the_nodes_that_the_whole_pretends(void **state)
{
    (void)state;
    if (test_size < 4 || test_size % 2 != 0) return;
    assert_all(zero_comm_pretend_blocks(&world, 2) == ZERO_OK);
    bool fits = test_size % 4 == 0;
    assert_all(zero_comm_find_spread(&world, 1) == -1);
    assert_all(zero_comm_find_spread(&world, 2) == (fits ? -1 : test_size / 4));
    assert_all(zero_comm_find_spread(&world, test_size) == 0);
    assert_all(zero_comm_divide(&world, 2) == ZERO_OK);
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

/* ---- sums ---- */

static void sums_of_integers_count_as_planned(void **state)
{
    (void)state;
    enum { WORDS = 600000 }; /* more than MPI gets at a time */
    int64_t *words = calloc(WORDS, sizeof *words);
    zero_traffic planned = {0}, moved = world.traffic[ZERO_CONTROL];
    assert_non_null(words);
    for (int64_t i = 0; i < WORDS; i++) words[i] = (i - 7) * (1 + test_rank) * 1000003;
    assert_all(zero_comm_sum(&world, WORDS, words) == ZERO_OK);
    int64_t weight = (int64_t)test_size * (test_size + 1) / 2 * 1000003, wrong = 0;
    for (int64_t i = 0; i < WORDS; i++) wrong += words[i] != (i - 7) * weight;
    assert_all(wrong == 0);
    zero_small_add_reduced(&planned, &world.layout, test_rank, WORDS, sizeof *words);
    zero_traffic_add(&moved, 1, &planned);
    assert_all(memcmp(&moved, &world.traffic[ZERO_CONTROL], sizeof moved) == 0);
    assert_all(zero_comm_sum(&world, 0, words) == ZERO_OK);
    free(words);
}

/* ---- progress ---- */

/* A reduce-scatter in each group of the family. */
typedef struct {
    family_group groups[2];
    family_job jobs[2];
} pair;

static void pair_open(pair *p, zero_algorithm algorithm)
{
    p->groups[0] = family_open(zero_comm_tp(&world));
    p->groups[1] = family_open(zero_comm_data(&world));
    for (int i = 0; i < 2; i++) {
        zero_collective_spec spec =
            family_spec(p->groups[i].comm, algorithm, ZERO_REDUCE_SCATTER, i);
        p->jobs[i] = family_make(&p->groups[i], &spec, 0);
    }
}

static void pair_close(pair *p)
{
    for (int i = 0; i < 2; i++) {
        family_destroy(&p->jobs[i]);
        family_close(&p->groups[i]);
    }
}

/* 0 if this rank turns to its TP group first, 1 if to its ZeRO group. Neighbours in either group
 * differ, so ranks that move the first one only wait in a circle. */
static int find_first(void)
{
    int tp = zero_comm_tp(&world)->size;
    return (test_rank / tp + test_rank % tp) % 2;
}

static bool is_even(int n)
{
    return n >= 4 && n % 2 == 0;
}

/* A rank that moves the collective of one group only never ends it: the circle is real. Waits end
 * it. */
static void waits_move_the_collectives_of_both_groups(void **state)
{
    (void)state;
    pair p;
    bool done = false;
    if (!is_even(test_size)) return;
    assert_all(zero_comm_divide(&world, 2) == ZERO_OK);
    pair_open(&p, ZERO_ALGORITHM_P2P);
    int first = find_first();
    for (int i = 0; i < 2; i++) family_fill(&p.jobs[i], 1);
    family_begin(&p.jobs[first]);
    family_begin(&p.jobs[!first]);
    double end = zero_clock_seconds() + 0.3;
    while (zero_clock_seconds() < end)
        assert_int_equal(zero_collective_progress(&p.jobs[first].op, &done), ZERO_OK);
    assert_all(test_size > 4 || !done);
    assert_int_equal(zero_collective_wait(&p.jobs[first].op), ZERO_OK);
    assert_int_equal(zero_collective_wait(&p.jobs[!first].op), ZERO_OK);
    assert_all(family_is_right(&p.jobs[0]) && family_is_right(&p.jobs[1]));
    pair_close(&p);
}

/* Ranks begin in opposite orders, are late, and wait in opposite orders. */
static bool run_crosswise(pair *p, uint64_t trial)
{
    uint64_t random = oracle_bits(trial, test_rank, 0);
    int first = find_first() ^ ((random >> 40) % 8 == 0);
    for (int i = 0; i < 2; i++) family_fill(&p->jobs[i], trial);
    family_begin(&p->jobs[first]);
    family_dawdle(random);
    family_begin(&p->jobs[!first]);
    family_dawdle(random >> 10);
    assert_int_equal(zero_collective_wait(&p->jobs[first].op), ZERO_OK);
    family_dawdle(random >> 20);
    assert_int_equal(zero_collective_wait(&p->jobs[!first].op), ZERO_OK);
    bool right = family_is_right(&p->jobs[0]) && family_is_right(&p->jobs[1]);
    /* A neighbour may still read `in` through a window. */
    assert_int_equal(zero_comm_barrier(&world), ZERO_OK);
    return right;
}

static void run_all_crosswise(int tp, uint64_t trials)
{
    assert_all(zero_comm_divide(&world, tp) == ZERO_OK);
    for (int a = 0; a < ZERO_ALGORITHMS; a++) {
        const zero_layout *data = &zero_comm_data(&world)->layout;
        if (a == ZERO_ALGORITHM_SHM && data->n_nodes > 1) continue;
        pair p;
        bool right = true;
        pair_open(&p, (zero_algorithm)a);
        for (uint64_t t = 0; t < trials; t++) right = run_crosswise(&p, t) && right;
        assert_all(right);
        pair_close(&p);
    }
    zero_comm_destroy(&world);
    assert_all(zero_comm_world(&world) == ZERO_OK);
}

static void ranks_that_turn_to_different_groups_never_wait_in_a_circle(void **state)
{
    (void)state;
    for (int tp = 2; tp < test_size; tp++)
        if (test_size % tp == 0) run_all_crosswise(tp, test_size == 4 ? 200 : 80);
}

/* Two nodes: sums within TP groups stay on a node, those within ZeRO groups cross. */
static void ranks_on_two_nodes_never_wait_in_a_circle(void **state)
{
    (void)state;
    if (!is_even(test_size) || test_size % 4 != 0) return;
    assert_all(zero_comm_pretend_blocks(&world, 2) == ZERO_OK);
    run_all_crosswise(2, 50);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(ranks_are_neighbours_in_tp_and_strided_in_zero),
        TEST(a_group_that_is_not_divided_is_its_own_zero_group),
        TEST(impossible_divisions_are_refused_with_the_numbers),
        TEST(helpers_work_on_the_whole_only),
        TEST(parts_have_the_nodes_that_the_whole_pretends),
        TEST(sums_of_integers_count_as_planned),
        TEST(waits_move_the_collectives_of_both_groups),
        TEST(ranks_that_turn_to_different_groups_never_wait_in_a_circle),
        TEST(ranks_on_two_nodes_never_wait_in_a_circle),
    };
    if (zero_launch_start_threaded(&argc, &argv) != ZERO_OK) return 1;
    test_begin(&argc, &argv);
    return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
