/* zero/collective.h: orders, groups, threads, waits, and memory that neighbours share. */
#include "collective_api.h"

#include <pthread.h>
#include <unistd.h>

/* A group of n ranks from `first` on. */
static zero_comm *group_from(int first, int n, const char *name)
{
    int ranks[16];
    zero_comm *group;
    for (int r = 0; r < n; r++) ranks[r] = first + r;
    assert_ok(zero_comm_open_ranks(world, n, ranks, name, &group));
    return group;
}

TEST(messages_meet_by_tag)
{
    int got[3] = {-1, -1, -1}, sent[3] = {10, 11, 12};
    zero_work *works[6];
    const int next = (test_rank + 1) % test_size,
              last = (test_rank + test_size - 1) % test_size;
    for (int i = 0; i < 3; i++) {
        zero_message send = {next, false, i, &sent[i], sizeof sent[i]};
        zero_message receive = {last, true, 2 - i, &got[2 - i], sizeof got[i]};
        assert_ok(zero_exchange_begin(world, 1, &send, &works[2 * i]));
        assert_ok(zero_exchange_begin(world, 1, &receive, &works[2 * i + 1]));
    }
    for (int i = 5; i >= 0; i--) end(works[i]);
    for (int i = 0; i < 3; i++) assert_all(got[i] == 10 + i);
}

/* A message between a rank and the last one, outside the world's order. */
static void tell(zero_comm *beside, int peer, bool receives)
{
    char word = 'x';
    zero_work *work;
    const zero_message message = {peer, receives, 0, &word, sizeof word};
    assert_ok(zero_exchange_begin(beside, 1, &message, &work));
    end(work);
}

/* The last rank is late: it comes when all others have seen that it is not there. */
TEST(a_barrier_waits_for_all)
{
    zero_work *work;
    bool done = true;
    const int last = test_size - 1;
    zero_comm *beside = group_from(0, test_size, "beside");
    for (int r = 0; r < last && test_rank == last; r++) tell(beside, r, true);
    assert_ok(zero_barrier_begin(world, &work));
    if (test_rank < last) {
        for (int i = 0; i < 100; i++) assert_ok(zero_work_test(work, &done));
        assert_false(done);
        assert_ok(zero_work_wait(work, 1e-3, &done));
        assert_false(done);
        tell(beside, last, false);
    }
    end(work);
    zero_comm_close(&beside);
}

TEST(thirty_in_flight_are_waited_for_in_reverse)
{
    enum { N = 30 };
    zero_work *work[N];
    int64_t *data[N];
    for (int i = 0; i < N; i++) {
        data[i] = filled(ZERO_SUM, ZERO_NUMBER_INT64, test_rank, 100 + i);
        assert_ok(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_INT64, 100 + i % 3,
                                        data[i], &work[i]));
    }
    for (int i = N - 1; i >= 0; i--) {
        end(work[i]);
        assert_all(wrong(ZERO_SUM, ZERO_NUMBER_INT64, test_size, 0, 100 + i % 3, data[i]) ==
                   0);
        free(data[i]);
    }
}

/* Neighbours and their neighbours, begun in different orders. */
TEST(groups_overlap)
{
    const int n = test_size;
    if (n < 3) return;
    zero_comm *low = test_rank < n - 1 ? group_from(0, n - 1, "low") : NULL;
    zero_comm *high = test_rank > 0 ? group_from(1, n - 1, "high") : NULL;
    for (int run = 0; run < 20; run++) {
        int32_t a = test_rank, b = test_rank;
        zero_work *first = NULL, *second = NULL;
        for (int turn = 0; turn < 2; turn++)
            if (turn == test_rank % 2 && high)
                assert_ok(zero_all_reduce_begin(high, ZERO_SUM, ZERO_NUMBER_INT32, 1, &b,
                                                &second));
            else if (turn != test_rank % 2 && low)
                assert_ok(
                    zero_all_reduce_begin(low, ZERO_SUM, ZERO_NUMBER_INT32, 1, &a, &first));
        if (first) end(first);
        if (second) end(second);
        assert_all(!low || a == (n - 1) * (n - 2) / 2);
        assert_all(!high || b == n * (n - 1) / 2);
    }
    zero_comm_close(&high);
    zero_comm_close(&low);
    assert_all(low == NULL && high == NULL);
}

static void *run_many(void *arg)
{
    zero_comm *comm = arg;
    int64_t bad = 0;
    for (int i = 0; i < 100; i++) {
        int64_t data[2] = {test_rank, i};
        zero_work *work;
        bool done;
        if (zero_all_reduce_begin(comm, ZERO_SUM, ZERO_NUMBER_INT64, 2, data, &work) !=
                ZERO_OK ||
            (i % 2 ? zero_work_wait(work, 0.0, &done)
                   : zero_work_wait_beside(work, 0.0, &done)) != ZERO_OK)
            bad++;
        zero_work_close(&work);
        bad += data[0] != test_size * (test_size - 1) / 2 || data[1] != i * test_size;
    }
    return bad == 0 ? comm : NULL;
}

TEST(two_threads_begin_and_wait)
{
    zero_comm *other = group_from(0, test_size, "other");
    pthread_t thread;
    void *here, *there;
    assert_int_equal(pthread_create(&thread, NULL, run_many, other), 0);
    here = run_many(world);
    pthread_join(thread, &there);
    assert_all(here && there);
    zero_comm_close(&other);
}

/* The library's thread moves it while nobody looks. */
TEST(what_nobody_waits_for_ends)
{
    zero_comm_bytes before, after;
    zero_work *work;
    const int64_t count = 1200000;
    const int64_t all_bytes = 2 * 4 * count * (test_size - 1) / test_size;
    int64_t sent = -1;
    float *data = calloc((size_t)count, sizeof *data);
    zero_comm_traffic(world, &before);
    assert_ok(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_FP32, count, data, &work));
    for (int i = 0; i < 1000 && sent != all_bytes; i++) {
        if (i > 0) usleep(10000);
        zero_comm_traffic(world, &after);
        sent = after.all_reduce.bytes_sent - before.all_reduce.bytes_sent;
    }
    assert_all(sent == all_bytes);
    end(work);
    free(data);
}

TEST(close_waits_for_what_is_in_flight)
{
    zero_work *work;
    int32_t *data = filled(ZERO_SUM, ZERO_NUMBER_INT32, test_rank, 1000);
    assert_ok(zero_all_reduce_begin(world, ZERO_SUM, ZERO_NUMBER_INT32, 1000, data, &work));
    zero_work_close(&work);
    assert_null(work);
    zero_work_close(&work);
    zero_work_close(NULL);
    assert_all(wrong(ZERO_SUM, ZERO_NUMBER_INT32, test_size, 0, 1000, data) == 0);
    free(data);
}

/* ---- shared memory ---- */

/* Data lie at different places on different ranks, and on the last one perhaps not in the shared
 * memory at all. */
static void share_memory(zero_comm *group, bool all_shared)
{
    enum { COUNT_ = 50000 };
    const int64_t n = test_size;
    const bool mine = all_shared || test_rank < n - 1;
    zero_comm_bytes before, after;
    void *gap = zero_comm_allocate(group, (size_t)(4096 * test_rank + 1));
    const size_t bytes = (size_t)n * COUNT_ * sizeof(float);
    float *data[3];
    zero_work *work[3];
    for (int k = 0; k < 3; k++) {
        data[k] = mine ? zero_comm_allocate(group, bytes) : malloc(bytes);
        assert_non_null(data[k]);
    }
    zero_comm_traffic(group, &before);
    for (int64_t i = 0; i < n * COUNT_; i++) {
        data[0][i] = (float)value(ZERO_MEAN, test_rank, i);
        data[1][i] = (float)value(ZERO_SUM, test_rank, i);
        data[2][i] = (float)test_rank;
    }
    float *own = data[2] + test_rank * COUNT_;
    assert_ok(zero_reduce_scatter_begin(group, ZERO_MEAN, ZERO_NUMBER_FP32, COUNT_, data[0],
                                        data[0] + test_rank * COUNT_, &work[0]));
    assert_ok(zero_all_reduce_begin(group, ZERO_SUM, ZERO_NUMBER_FP32, n * COUNT_, data[1],
                                    &work[1]));
    assert_ok(zero_all_gather_begin(group, COUNT_ * sizeof(float), own, data[2], &work[2]));
    for (int k = 2; k >= 0; k--) end(work[k]);
    zero_comm_traffic(group, &after);
    assert_all(wrong(ZERO_MEAN, ZERO_NUMBER_FP32, test_size, test_rank * COUNT_, COUNT_,
                     data[0] + test_rank * COUNT_) == 0);
    assert_all(wrong(ZERO_SUM, ZERO_NUMBER_FP32, test_size, 0, n * COUNT_, data[1]) == 0);
    bool gathered = true;
    for (int64_t i = 0; i < n * COUNT_; i++)
        gathered = gathered && data[2][i] == (float)(i / COUNT_);
    assert_all(gathered);
    int64_t messages = after.reduce_scatter.messages_sent -
                       before.reduce_scatter.messages_sent +
                       after.all_gather.messages_sent - before.all_gather.messages_sent +
                       after.all_reduce.messages_sent - before.all_reduce.messages_sent;
    assert_all(all_shared || n == 1 ? messages == 0 : messages > 0);
    assert_all(after.all_reduce.bytes_sent - before.all_reduce.bytes_sent ==
               (int64_t)bytes * 2 * (n - 1) / n);
    for (int k = 0; k < 3; k++) mine ? zero_comm_free(group, data[k]) : free(data[k]);
    zero_comm_free(group, gap);
}

TEST(neighbours_read_what_lies_in_shared_memory)
{
    zero_comm *group = group_from(0, test_size, "sharing");
    assert_all(zero_comm_allocate(group, 1) == NULL);
    all_ok(zero_comm_share(group, (size_t)8 << 20));
    all_fail(zero_comm_share(group, 1), ZERO_ERR_INVALID, "shares memory already");
    for (int run = 0; run < 3; run++) {
        share_memory(group, true);
        share_memory(group, false);
    }
    void *all =
        zero_comm_allocate(group, (size_t)8 << 20); /* the parts were joined again */
    assert_all(all != NULL);
    assert_all(zero_comm_allocate(group, 1) == NULL);
    zero_comm_free(group, all);
    zero_comm_close(&group);
}
