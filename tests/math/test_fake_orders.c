/* The queues of the fake device: what they wait for, and that a wait that is left out shows. */
#include "support/device_test.h"

/* A mistake shows in one order at least. */
enum { ORDERS = 40, N = 1024 };

static const size_t bytes = N * sizeof(float);
static const size_t space = 16 * N * sizeof(float);

/* The device's [N] numbers at place i. */
static float *place(const device *d, int i)
{
    return device_floats(d, (int64_t)i * N);
}

static void fill(const device *d, int i, float value)
{
    for (int k = 0; k < N; k++) host_floats(d, (int64_t)i * N)[k] = value;
}

/* Calls that copy a place of the device, as units do. */
static void copy(const device *d, int from, int to)
{
    fake->round(&d->math, ZERO_FP32, N, place(d, from), place(d, to));
}

static zero_ticket store(const device *d, int i)
{
    return device_store(d, (size_t)i * bytes, bytes);
}

static zero_ticket fetch(const device *d, int i)
{
    return device_fetch(d, (size_t)i * bytes, bytes);
}

/* All numbers of a place are `value`, when they are on the device. */
static bool holds(const device *d, int i, float value)
{
    device_wait(d, fetch(d, i));
    for (int k = 0; k < N; k++)
        if (host_floats(d, (int64_t)i * N)[k] != value) return false;
    return true;
}

static void after(const device *d, zero_ticket ticket)
{
    assert_ok(fake->memory->after(&d->math, ticket));
}

/* In how many orders a program with the wait, or without it, gives another result. */
static int wrong_orders(bool (*is_right)(const device *d, bool waits), bool waits)
{
    int wrong = 0;
    for (int order = 1; order <= ORDERS; order++) {
        device d = device_open(order, space);
        wrong += !is_right(&d, waits);
        device_close(&d);
    }
    return wrong;
}

static void check(const char *wait, bool (*is_right)(const device *d, bool waits))
{
    const int wrong = wrong_orders(is_right, false);
    print_message("without %s: wrong in %d of %d orders\n", wait, wrong, ORDERS);
    assert_int_equal(wrong_orders(is_right, true), 0);
    assert_true(wrong > 0);
}

/* ---- mistakes ---- */

static bool call_reads_what_was_stored(const device *d, bool waits)
{
    fill(d, 0, 1.0f);
    zero_ticket stored = store(d, 0);
    if (waits) after(d, stored);
    copy(d, 0, 1);
    return holds(d, 1, 1.0f);
}

static bool fetch_reads_what_was_stored(const device *d, bool waits)
{
    fill(d, 0, 1.0f);
    zero_ticket stored = store(d, 0), fetched;
    if (waits) device_wait(d, stored);
    assert_ok(
        fake->memory->fetch(&d->math, host_floats(d, N), place(d, 0), bytes, &fetched));
    device_wait(d, fetched);
    return host_floats(d, N)[7] == 1.0f;
}

/* after() is enough: the copy waits for calls, and the last of them waits for the store. */
static bool call_passes_it_on(const device *d, bool waits)
{
    fill(d, 0, 1.0f);
    zero_ticket stored = store(d, 0);
    if (waits) after(d, stored);
    copy(d, 0, 2);
    zero_ticket fetched = fetch(d, 2);
    device_wait(d, fetched);
    return host_floats(d, 2 * N)[N - 1] == 1.0f;
}

/* So is it without any call in between. */
static bool after_holds_for_copies(const device *d, bool waits)
{
    fill(d, 0, 1.0f);
    zero_ticket stored = store(d, 0), fetched;
    if (waits) after(d, stored);
    assert_ok(
        fake->memory->fetch(&d->math, host_floats(d, N), place(d, 0), bytes, &fetched));
    device_wait(d, fetched);
    return host_floats(d, N)[7] == 1.0f;
}

static bool host_memory_is_used_again(const device *d, bool waits)
{
    fill(d, 0, 1.0f);
    zero_ticket stored = store(d, 0);
    if (waits) device_wait(d, stored);
    fill(d, 0, 2.0f);
    device_wait(d, stored);
    return holds(d, 0, 1.0f);
}

static bool memory_is_used_again(const device *d, bool waits)
{
    fill(d, 0, 1.0f);
    after(d, store(d, 0));
    copy(d, 0, 1);
    zero_ticket fetched = fetch(d, 1);
    if (waits) after(d, fetched);
    fake->clear(&d->math, N, place(d, 1));
    device_wait(d, fetched);
    return host_floats(d, N)[0] == 1.0f;
}

static bool host_reads_what_was_fetched(const device *d, bool waits)
{
    zero_ticket fetched = fetch(d, 0);
    if (waits) device_wait(d, fetched);
    return host_floats(d, 0)[3] == 0.0f;
}

/* A second store may run before a fetch of the same memory. */
static bool store_leaves_what_is_fetched(const device *d, bool waits)
{
    fill(d, 0, 1.0f), fill(d, 1, 2.0f);
    device_wait(d, store(d, 0));
    zero_ticket fetched = fetch(d, 0), stored;
    if (waits) device_wait(d, fetched);
    assert_ok(
        fake->memory->store(&d->math, place(d, 0), host_floats(d, N), bytes, &stored));
    device_wait(d, stored);
    device_wait(d, fetched);
    return host_floats(d, 0)[0] == 1.0f;
}

TEST(a_wait_that_is_left_out_shows)
{
    check("after() between a store and a call", call_reads_what_was_stored);
    check("waiting between a store and a fetch", fetch_reads_what_was_stored);
    check("after() between a store and a call that is fetched", call_passes_it_on);
    check("after() between a store and a fetch", after_holds_for_copies);
    check("waiting before host memory is used again", host_memory_is_used_again);
    check("after() before fetched memory is used again", memory_is_used_again);
    check("waiting before a fetch is read", host_reads_what_was_fetched);
    check("waiting between a fetch and a store", store_leaves_what_is_fetched);
}

/* ---- places among calls ---- */

/* A fetch since a place: the number that calls before it left, or one of a later call. */
static float fetched_since(const device *d, bool has_place)
{
    zero_call_place at;
    fill(d, 0, 1.0f), fill(d, 1, 2.0f);
    after(d, store(d, 0));
    after(d, store(d, 1));
    copy(d, 0, 2);
    assert_ok(fake->memory->place(&d->math, &at));
    copy(d, 1, 2);
    if (has_place) fake->memory->since(&d->math, at);
    zero_ticket fetched = fetch(d, 2);
    fake->memory->since(&d->math, 0);
    device_wait(d, fetched);
    const float value = host_floats(d, 2 * N)[N - 1];
    assert_true(holds(d, 2, 2.0f)); /* without a place again */
    return value;
}

TEST(a_copy_since_a_place_waits_for_the_calls_before_it_alone)
{
    int earlier = 0;
    for (int order = 1; order <= ORDERS; order++) {
        device d = device_open(order, space);
        assert_true(fetched_since(&d, false) == 2.0f);
        const float value = fetched_since(&d, true);
        assert_true(value == 1.0f || value == 2.0f);
        earlier += value == 1.0f;
        device_close(&d);
    }
    print_message("it runs before a later call in %d of %d orders\n", earlier, ORDERS);
    assert_true(earlier > 0 && earlier < ORDERS);
}

/* ---- rules ---- */

/* Calls in order; copies after the calls before them; copies of one direction in order. */
static bool follows_the_rules(const device *d)
{
    fill(d, 0, 1.0f), fill(d, 1, 2.0f);
    zero_ticket first = store(d, 0), second;
    assert_ok(
        fake->memory->store(&d->math, place(d, 0), host_floats(d, N), bytes, &second));
    after(d, second);
    for (int i = 0; i < 8; i++) copy(d, i, i + 1);
    zero_ticket fetched = fetch(d, 8), again = fetch(d, 7);
    device_wait(d, again);
    bool ended[2];
    assert_ok(fake->memory->ended(&d->math, first, &ended[0]));
    assert_ok(fake->memory->ended(&d->math, fetched, &ended[1]));
    return ended[0] && ended[1] && host_floats(d, 8 * N)[5] == 2.0f &&
           host_floats(d, 7 * N)[5] == 2.0f;
}

TEST(queues_keep_their_order)
{
    for (int order = 0; order <= ORDERS; order++) {
        device d = device_open(order, space);
        assert_true(follows_the_rules(&d));
        device_close(&d);
    }
}

TEST(sync_executes_calls_and_counts_drains)
{
    int lazy = 0;
    for (int order = 0; order <= ORDERS; order++) {
        device d = device_open(order, space);
        for (int i = 0; i < 30; i++) copy(&d, 0, 1);
        assert_ok(fake->sync(&d.math));
        zero_fake_counts counts = zero_fake_counted(&d.math);
        assert_int_equal(counts.calls, 30);
        assert_int_equal(counts.drains, order > 0 && counts.drains);
        if (counts.most_queued == 30) lazy++;
        if (counts.most_queued == 30) assert_int_equal(counts.drains, 1);
        assert_ok(fake->sync(&d.math)); /* nothing is left */
        assert_int_equal(zero_fake_counted(&d.math).drains, counts.drains);
        assert_int_equal(zero_fake_counted(&d.math).syncs, 2);
        device_close(&d);
    }
    print_message("30 calls waited for sync() in %d of %d orders\n", lazy, ORDERS);
    assert_true(lazy > 0 && lazy < ORDERS);
}

TEST(ended_says_no_and_then_yes)
{
    int64_t noes = 0, waits = 0;
    for (int order = 0; order <= ORDERS; order++) {
        device d = device_open(order, space);
        device_wait(&d, fetch(&d, 0)); /* fails after 100 noes */
        device_wait(&d, 0);
        after(&d, fetch(&d, 0));
        after(&d, 0); /* nothing to wait for */
        zero_fake_counts counts = zero_fake_counted(&d.math);
        if (order == 0) assert_true(counts.not_ended == 0 && counts.waits == 0);
        noes += counts.not_ended, waits += counts.waits;
        device_close(&d);
    }
    assert_true(noes > 0 && waits > 0 && waits < ORDERS);
}

/* More calls and copies than the rings hold, and none is waited for. */
TEST(full_queues_execute_their_oldest)
{
    for (int order = 0; order <= 5; order++) {
        device d = device_open(order, space);
        zero_ticket last = 0;
        fill(&d, 0, 1.0f);
        after(&d, store(&d, 0));
        for (int i = 0; i < 5000; i++)
            fake->accumulate(&d.math, ZERO_FP32, N, place(&d, 1), place(&d, 0),
                             place(&d, 1));
        for (int i = 0; i < 3000; i++) {
            last = device_fetch(&d, bytes, 16);
            after(&d, device_store(&d, 2 * bytes, 16));
        }
        device_wait(&d, last);
        assert_true(host_floats(&d, N)[0] == 5000.0f);
        assert_true(holds(&d, 1, 5000.0f));
        device_close(&d);
    }
}

/* Once per call, and a poll may ask for copies and begin them. */
static void poll(void *arg)
{
    const device *d = arg;
    zero_ticket ticket;
    bool ended;
    assert_ok(fake->memory->fetch(&d->math, d->host + 4096, d->memory + 4096, 64, &ticket));
    assert_ok(fake->memory->ended(&d->math, ticket, &ended));
    assert_ok(fake->memory->after(&d->math, ticket));
}

TEST(each_call_polls_once)
{
    for (int order = 0; order <= 5; order++) {
        device d = device_open(order, space);
        d.math.poll = poll, d.math.poll_arg = &d;
        for (int i = 0; i < 3000; i++) copy(&d, 0, 1);
        assert_ok(fake->sync(&d.math));
        assert_int_equal(zero_fake_counted(&d.math).copies, 3000);
        device_close(&d);
    }
}
