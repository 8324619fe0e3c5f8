/* The queue of events. */

#include "support/test.h"

#include "simulation/events.h"
#include "simulation/queues.h"
#include "support/tree_oracle.h"

TEST(events_come_in_the_order_of_their_times)
{
    zero_events e = {0};
    zero_event event, before = {.time = -1.0};
    uint64_t random = 1;
    int n = 0;
    for (int i = 0; i < 20000; i++) {
        random = oracle_mix(random);
        for (uint64_t k = 0; k < random % 3; k++)
            zero_events_add(&e, e.now + (double)(random >> 8 & 15), ZERO_EVENT_RANK, i);
        if (!zero_events_next(&e, &event)) continue;
        n++;
        assert_true(event.time > before.time ||
                    (event.time == before.time && event.number > before.number));
        assert_true(e.now == event.time);
        before = event;
    }
    while (zero_events_next(&e, &event)) n++;
    assert_true(!e.failed && n == e.added && n > 10000);
    zero_events_destroy(&e);
}

TEST(events_of_one_time_come_as_they_were_added)
{
    zero_events e = {0};
    zero_event event;
    for (int i = 0; i < 1000; i++) zero_events_add(&e, 1.0, ZERO_EVENT_RANK, i);
    for (int i = 0; i < 1000; i++) {
        assert_true(zero_events_next(&e, &event));
        assert_true(event.which == i && event.kind == ZERO_EVENT_RANK);
    }
    assert_false(zero_events_next(&e, &event));
    zero_events_destroy(&e);
}

typedef struct {
    zero_queued queued;
    int64_t number; /* of its key, in the order in which they came */
} waiting;

/* Against an array that has all keys. */
TEST(queues_are_found_until_they_are_empty)
{
    enum { KEYS = 500 };
    zero_queues q = {0};
    zero_pool pool = {.size = sizeof(waiting)};
    int64_t come[KEYS] = {0}, gone[KEYS] = {0};
    uint64_t random = 7;
    for (int i = 0; i < 100000; i++) {
        random = oracle_mix(random);
        uint64_t k = random % KEYS, key = k << 32 | k % 7;
        zero_queue *found = zero_queues_find(&q, key);
        assert_true((found != NULL) == (come[k] > gone[k]));
        if (random >> 40 & 1) {
            waiting *one = zero_pool_take(&pool);
            assert_non_null(one);
            one->number = come[k]++;
            assert_true(zero_queues_append(&q, key, &one->queued));
        } else if (found) {
            assert_true(found->key == key);
            waiting *one = zero_queues_take(&q, found);
            assert_true(one->number == gone[k]++);
            zero_pool_give(&pool, one);
        }
    }
    for (uint64_t k = 0; k < KEYS; k++)
        assert_true((zero_queues_find(&q, k << 32 | k % 7) != NULL) == (come[k] > gone[k]));
    zero_queues_destroy(&q);
    zero_pool_destroy(&pool);
}
