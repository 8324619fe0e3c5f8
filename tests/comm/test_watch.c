/* The watchdog, the check and the progress thread of a group. faults.sh has the cases that end a
 * job. */
#define TEST_HAS_MAIN
#include "comm/watch.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/waiting.h"
#include "comm/check.h"
#include "comm/collective.h"
#include "comm/launch.h"
#include "comm/operation.h"
#include "comm/thread.h"
#include "support/late.h"
#include "support/test_world.h"

#define ELEMENTS 1000 /* elements of a piece */

static bool am_last(void)
{
    return test_rank == test_size - 1;
}

static void sleep_for(double seconds)
{
    usleep((useconds_t)(1e6 * seconds));
}

static void *allocate(size_t bytes)
{
    void *p = calloc(bytes + 1, 1);
    if (!p) abort();
    return p;
}

/* ---- one collective and its buffers ---- */

typedef struct {
    zero_collective op;
    float *in, *out;
    void *staging;
} job;

static job make(const zero_collective_spec *spec)
{
    size_t n = (size_t)spec->stride * (size_t)test_size;
    job j = {.in = allocate(n * sizeof(float)), .out = allocate(n * sizeof(float))};
    for (size_t i = 0; i < n; i++) j.in[i] = 1.0f / (float)(1 + i + 7 * (size_t)test_rank);
    j.staging =
        aligned_alloc(64, zero_collective_staging(spec, &world.layout) / 64 * 64 + 64);
    if (!j.staging || zero_collective_init(&j.op, &world, spec) != ZERO_OK) abort();
    return j;
}

static zero_status begin(job *j)
{
    return zero_collective_begin(&j->op, j->in, j->out, j->staging);
}

static void destroy(job *j)
{
    zero_collective_destroy(&j->op);
    free(j->in);
    free(j->out);
    free(j->staging);
}

static const zero_collective_spec all_gather = {
    .kind = ZERO_ALL_GATHER, .count = ELEMENTS, .stride = ELEMENTS, .unit = 5};
static const zero_collective_spec reduce_scatter = {.kind = ZERO_REDUCE_SCATTER,
                                                    .count = ELEMENTS,
                                                    .stride = ELEMENTS,
                                                    .max_chunk = 64,
                                                    .unit = 6};

/* ---- the check ---- */

/* "rank 1 began A, the others B", where B is what most ranks began, or rank 0. */
static bool says_who_differs(int differs, const char *its, const char *theirs)
{
    char expected[2 * ZERO_OPERATION_TEXT + 64];
    bool is_minority = test_size > 2 || differs > 0;
    snprintf(expected, sizeof expected,
             "rank %d began %s, the others %s: ", is_minority ? differs : 1,
             is_minority ? its : theirs, is_minority ? theirs : its);
    bool found = strncmp(zero_last_error(), expected, strlen(expected)) == 0;
    if (!found) print_error("expected: %s\nfound: %s\n", expected, zero_last_error());
    return found;
}

static void check_difference(int differs, const zero_collective_spec *other)
{
    char its[ZERO_OPERATION_TEXT], theirs[ZERO_OPERATION_TEXT];
    zero_operation its_op = zero_operation_collective(other, world.sequence);
    zero_operation their_op = zero_operation_collective(&all_gather, world.sequence);
    zero_operation_describe(&its_op, its);
    zero_operation_describe(&their_op, theirs);
    assert_string_not_equal(its, theirs);

    int64_t sequence = world.sequence;
    job j = make(test_rank == differs ? other : &all_gather);
    assert_all(begin(&j) == ZERO_ERR_INVALID);
    assert_all(says_who_differs(differs, its, theirs));
    assert_all(!j.op.is_active && world.sequence == sequence);
    destroy(&j);
}

TEST(a_rank_that_begins_something_else_is_named)
{
    if (test_size == 1) return;
    zero_collective_spec other[8];
    for (int i = 0; i < 8; i++) other[i] = all_gather;
    other[0].kind = ZERO_REDUCE_SCATTER;
    other[1].unit = ZERO_NO_UNIT;
    other[2].count = ELEMENTS - 1;
    other[3].stride = ELEMENTS + 64;
    other[4].type = other[4].result = ZERO_BF16;
    other[5].algorithm = ZERO_ALGORITHM_MPI;
    other[6].max_chunk = 10;
    other[7].kind = ZERO_BROADCAST;
    all_ok(zero_check_start(&world));
    for (int differs = 0; differs < test_size; differs++)
        for (int i = 0; i < 8; i++) check_difference(differs, &other[i]);
}

TEST(small_messages_are_compared_too)
{
    if (test_size == 1) return;
    char its[] = "barrier 000", theirs[] = "message to all 000 (3 bytes from rank 0)";
    char data[4] = "";
    all_ok(zero_check_start(&world));
    int number = (int)world.control_sequence;
    snprintf(its, sizeof its, "barrier %d", number);
    snprintf(theirs, sizeof theirs, "message to all %d (3 bytes from rank 0)", number);
    zero_status st =
        am_last() ? zero_comm_barrier(&world) : zero_comm_broadcast(&world, 0, data, 3);
    assert_all(st == ZERO_ERR_INVALID);
    assert_all(says_who_differs(test_size - 1, its, theirs));
    st = zero_comm_broadcast(&world, am_last() ? 1 : 0, data, 3);
    assert_all(st == ZERO_ERR_INVALID);
    st = zero_comm_broadcast(&world, 0, data, am_last() ? 4 : 3);
    assert_all(st == ZERO_ERR_INVALID);
}

/* Every rank begins something else: the text must fit, and count the ranks it does not name. */
TEST(many_differences_are_counted)
{
    if (test_size < 3) return;
    zero_collective_spec mine = all_gather;
    mine.unit = test_rank;
    all_ok(zero_check_start(&world));
    job j = make(&mine);
    all_fail(begin(&j), ZERO_ERR_INVALID, "rank 2 began all-gather");
    all_told("the others all-gather 0 of group 0");
    destroy(&j);
}

static void run_everything(float *sums, zero_traffic *traffic)
{
    bool any;
    char byte = 0;
    double mine = test_rank, *all = allocate((size_t)test_size * sizeof *all);
    zero_traffic before[ZERO_TRAFFIC_KINDS];
    memcpy(before, world.traffic, sizeof before);
    job a = make(&reduce_scatter), b = make(&all_gather);
    all_ok(begin(&a) == ZERO_OK && begin(&b));
    assert_all(zero_comm_any(&world, am_last(), &any) == ZERO_OK && any);
    all_ok(zero_collective_wait(&b.op));
    all_ok(zero_comm_all_gather_doubles(&world, 1, &mine, all));
    assert_all(all[test_size - 1] == test_size - 1);
    all_ok(zero_comm_broadcast(&world, 0, &byte, 1));
    int64_t most;
    uint64_t word = (uint64_t)1 << test_rank;
    assert_all(zero_comm_most(&world, test_rank, &most) == ZERO_OK &&
               most == test_size - 1);
    all_ok(zero_comm_or(&world, 1, &word));
    assert_all(word == ((uint64_t)1 << test_size) - 1);
    zero_tree_span span = {.blocks = test_size, .first = test_rank};
    zero_tree_span_append(&span, 1, 0.25);
    all_ok(zero_comm_merge_spans(&world, 1, &span));
    assert_all(zero_tree_span_sum(&span) == 0.25 * test_size);
    all_ok(zero_comm_barrier(&world));
    all_ok(zero_collective_wait(&a.op));
    memcpy(sums, a.out, ELEMENTS * sizeof *sums);
    for (int k = 0; k < ZERO_TRAFFIC_KINDS; k++) {
        traffic[k] = world.traffic[k];
        zero_traffic_add(&traffic[k], -1, &before[k]);
    }
    destroy(&a);
    destroy(&b);
    free(all);
}

TEST(a_checked_and_watched_group_works_as_any)
{
    float plain[ELEMENTS], checked[ELEMENTS];
    zero_traffic before[ZERO_TRAFFIC_KINDS], after[ZERO_TRAFFIC_KINDS];
    run_everything(plain, before);
    all_ok(zero_check_start(&world));
    all_ok(zero_watch_start(&world, 30.0));
    run_everything(checked, after);
    assert_all(memcmp(plain, checked, sizeof plain) == 0);
    assert_all(memcmp(before, after, sizeof before) == 0);
    all_ok(zero_check_stop(&world) == ZERO_OK && zero_watch_stop(&world));
    run_everything(checked, after);
    assert_all(memcmp(plain, checked, sizeof plain) == 0);
}

/* ---- the watchdog ---- */

TEST(a_watchdog_is_started_once_and_with_a_limit)
{
    assert_all(zero_watch_start(&world, -1.0) == ZERO_ERR_INVALID);
    assert_all(zero_watch_start(&world, (double)NAN) == ZERO_ERR_INVALID);
    assert_all(zero_watch_start(&world, 0.0) == ZERO_OK && !world.watch);
    for (int i = 0; i < 20; i++) {
        all_ok(zero_watch_start(&world, 1.0));
        assert_all((world.watch != NULL) == (test_size > 1));
        if (test_size > 1) assert_all(zero_watch_start(&world, 1.0) == ZERO_ERR_INVALID);
        assert_all(zero_watch_stop(&world) == ZERO_OK && !world.watch);
    }
}

/* The last rank comes later than `limit` seconds allow; it polls, or a thread does. Returns whether
 * this rank's wait failed. */
static bool come_late(double limit, bool polls)
{
    job j = make(&all_gather);
    zero_status st = ZERO_OK;
    double end = zero_clock_seconds() + 1.7 * limit;
    bool heard = false;
    while (am_last() && late_goes_on(end, &heard))
        if (polls) assert_ok(zero_collective_poll(&world));
    assert_ok(begin(&j));
    st = zero_collective_wait(&j.op);
    bool told = st == ZERO_ERR_STALLED;
    assert_true(told || st == ZERO_OK);
    zero_failure failure = zero_failure_keep(st);
    if (told) late_tell();
    if (told) assert_int_equal(zero_agree(&world, st), ZERO_ERR_STALLED);
    if (told) assert_ok(late_wait(&j.op));
    if (told) assert_int_equal(zero_failure_restore(&failure), ZERO_ERR_STALLED);
    destroy(&j);
    late_end();
    return told;
}

static void expect(const char *fmt, int64_t number)
{
    char expected[64];
    snprintf(expected, sizeof expected, fmt, (int)number);
    if (strstr(zero_last_error(), expected)) return;
    print_error("expected '%s' in: %s\n", expected, zero_last_error());
    fail();
}

static void expect_one_told(bool told, int64_t operation)
{
    int n = told, in_all = 0;
    MPI_Allreduce(&n, &in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_all(in_all == 1);
    if (!told) return;
    expect("rank %d is behind", test_size - 1);
    expect("rank %d: computing after barrier", test_size - 1);
    expect("barrier %d", operation);
    expect(test_size > 2 ? "ranks 0-%d: waiting for all-gather 0 of group 5"
                         : "rank %d: waiting for all-gather 0 of group 5",
           test_size - 2);
}

TEST(one_rank_says_which_rank_is_behind)
{
    const double limit = 1.6; /* a quarter of it is for answers */
    if (test_size == 1) return;
    all_ok(zero_watch_start(&world, limit));
    int64_t barrier = world.control_sequence;
    all_ok(zero_comm_barrier(&world));
    expect_one_told(come_late(limit, true), barrier);
}

/* Queries and answers of a stall that has passed are received before the group ends. Only a second
 * stall shows it. */
TEST(a_stall_that_passes_leaves_nothing_behind)
{
    for (int i = 0; i < 2 && test_size > 1; i++) {
        all_ok(zero_watch_start(&world, 0.4));
        (void)come_late(0.4, true);
        all_ok(zero_watch_stop(&world));
    }
}

/* The last rank begins a collective now and then. The others wait for the last one, longer than
 * the limit in all, while the ones before it end. */
TEST(slow_ranks_are_not_suspected)
{
    const double limit = 1.6, nap = 0.5;
    enum { JOBS = 5 };
    if (test_size == 1) return;
    job jobs[JOBS];
    all_ok(zero_watch_start(&world, limit));
    for (int i = 0; i < JOBS; i++) jobs[i] = make(&all_gather);
    double start = zero_clock_seconds();
    for (int i = 0; i < JOBS; i++) {
        if (am_last()) sleep_for(nap);
        assert_ok(begin(&jobs[i]));
        if (am_last()) assert_ok(zero_collective_wait(&jobs[i].op));
    }
    assert_ok(zero_collective_wait(&jobs[JOBS - 1].op));
    assert_all(zero_clock_seconds() - start > 0.8 * JOBS * nap);
    for (int i = 0; i < JOBS; i++) {
        assert_ok(zero_collective_wait(&jobs[i].op));
        destroy(&jobs[i]);
    }
}

/* Afterwards, even if the agreement fails, waits are as long as usual. */
TEST(ranks_that_work_on_files_are_waited_for_longer)
{
    const double limit = 0.4;
    if (test_size == 1) return;
    all_ok(zero_watch_start(&world, limit));
    if (am_last()) sleep_for(1.7 * limit);
    all_ok(zero_comm_barrier_after_files(&world));
    if (am_last()) sleep_for(1.7 * limit);
    zero_status st = am_last() ? zero_fail(ZERO_ERR_IO, "no file") : ZERO_OK;
    assert_all(zero_agree_after_files(&world, st) == ZERO_ERR_IO);
    all_ok(zero_comm_barrier(&world));
    int told = come_late(limit, true), in_all = 0;
    MPI_Allreduce(&told, &in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_all(in_all == 1);
}

/* The last rank is in calls on files, each of which ends within the limit. Its own message may end much
 * later. A call that has lasted for longer is no excuse. */
TEST(a_rank_whose_calls_on_files_return_is_waited_for)
{
    const double limit = 0.8;
    (void)state;
    if (test_size == 1) return;
    all_ok(zero_watch_start(&world, limit));
    for (int is_old = 0; is_old < 2; is_old++) {
        job j = make(&all_gather);
        zero_waiting call;
        bool heard = false;
        double end = zero_clock_seconds() + 5.0 * limit;
        while (am_last() &&
               (is_old ? late_goes_on(end, &heard) : zero_clock_seconds() < end)) {
            zero_waiting_begin(&call, "shard", "read", 1.0);
            if (is_old) call.begun -= 100.0;
            sleep_for(0.01);
            assert_ok(zero_collective_poll(&world));
            zero_waiting_end(&call);
        }
        assert_ok(begin(&j));
        zero_status st = zero_collective_wait(&j.op);
        int told = st == ZERO_ERR_STALLED, in_all = 0;
        if (told) late_tell();
        if (told) assert_ok(late_wait(&j.op));
        MPI_Allreduce(&told, &in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        assert_all(in_all == is_old);
        destroy(&j);
        late_end();
    }
}

/* ---- the thread ---- */

TEST(a_thread_wants_a_period)
{
    assert_all(zero_progress_start(&world, 0.0) == ZERO_ERR_INVALID);
    assert_all(zero_progress_start(&world, 1.1) == ZERO_ERR_INVALID);
    assert_all(zero_progress_start(&world, (double)NAN) == ZERO_ERR_INVALID);
    all_ok(zero_progress_start(&world, 1e-3));
    assert_all(zero_progress_start(&world, 1e-3) == ZERO_ERR_INVALID);
    zero_progress_stop(&world);
    zero_progress_stop(&world);
    all_ok(zero_progress_start(&world, 1e-3));
}

static bool is_active(const job *j)
{
    zero_thread_lock(&world);
    bool active = j->op.is_active;
    zero_thread_unlock(&world);
    return active;
}

TEST(collectives_end_while_the_program_does_not_poll)
{
    all_ok(zero_progress_start(&world, 1e-3));
    for (int i = 0; i < 3; i++) {
        job a = make(&reduce_scatter), b = make(&all_gather);
        all_ok(begin(&a) == ZERO_OK && begin(&b));
        for (int naps = 0; naps < 100 && (is_active(&a) || is_active(&b)); naps++)
            sleep_for(0.05);
        assert_all(!is_active(&a) && !is_active(&b));
        sleep_for(0.05); /* the thread goes to sleep, and is woken again */
        destroy(&a);
        destroy(&b);
    }
}

static void sum_often(int times, float *sums, zero_traffic *traffic)
{
    job a = make(&reduce_scatter), b = make(&all_gather);
    memset(sums, 0, ELEMENTS * sizeof *sums);
    world.traffic[ZERO_REDUCE_SCATTER] = (zero_traffic){0};
    for (int i = 0; i < times; i++) {
        a.in[i % ELEMENTS] += (float)i;
        assert_ok(begin(&a));
        assert_ok(begin(&b));
        if (i % 3 == test_rank % 3) sleep_for(1e-4);
        assert_ok(zero_collective_wait(&a.op));
        for (int e = 0; e < ELEMENTS; e++) sums[e] += a.out[e];
        assert_ok(zero_collective_wait(&b.op));
    }
    *traffic = world.traffic[ZERO_REDUCE_SCATTER];
    destroy(&a);
    destroy(&b);
}

TEST(a_thread_changes_neither_bits_nor_counters)
{
    float plain[ELEMENTS], with_thread[ELEMENTS];
    zero_traffic before, after;
    sum_often(500, plain, &before);
    all_ok(zero_progress_start(&world, 1e-4));
    sum_often(500, with_thread, &after);
    assert_all(memcmp(plain, with_thread, sizeof plain) == 0);
    assert_all(memcmp(&before, &after, sizeof before) == 0);
}

TEST(a_thread_answers_for_a_rank_that_computes)
{
    const double limit = 1.6;
    if (test_size == 1) return;
    all_ok(zero_progress_start(&world, 1e-3));
    sleep_for(0.05); /* the thread sleeps, and must notice the new watchdog */
    all_ok(zero_watch_start(&world, limit));
    int64_t barrier = world.control_sequence;
    all_ok(zero_comm_barrier(&world));
    expect_one_told(come_late(limit, false), barrier);
}

int main(int argc, char **argv)
{
    around.before = set_up;
    around.after = tear_down;
    if (zero_launch_start_threaded(&argc, &argv) != ZERO_OK) return 1;
    test_begin(&argc, &argv);
    return test_end(run_here(NULL, NULL));
}
