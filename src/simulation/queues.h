/* queues.h - queues that are found by a key, such as a sender and a receiver; and pools,
 * from which what waits is taken. A queue is there while something is in it, so memory is
 * that of what waits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of what waits in a queue. */
typedef struct zero_queued {
    struct zero_queued *next;
} zero_queued;

typedef struct {
    uint64_t key;
    zero_queued *first, *last; /* NULL: no queue is here */
} zero_queue;

typedef struct {
    zero_queue *table; /* [capacity]; owned */
    int64_t n, capacity;
} zero_queues;

void zero_queues_destroy(zero_queues *q); /* accepts a zeroed struct, which has no queue */

/* The queue, or NULL. Valid until the next call that appends or takes. */
zero_queue *zero_queues_find(const zero_queues *q, uint64_t key);
/* Puts one more at the end of the queue of that key. False: no memory. */
bool zero_queues_append(zero_queues *q, uint64_t key, zero_queued *last);
/* Takes the first one out of a queue. */
void *zero_queues_take(zero_queues *q, zero_queue *queue);

/* Items of one size, which have one address as long as they are taken. */
typedef struct {
    size_t size;  /* of an item, at least a pointer's and a multiple of 8 */
    void *blocks; /* owned */
    void *unused; /* items that were given back */
} zero_pool;

void zero_pool_destroy(zero_pool *p);
void *zero_pool_take(zero_pool *p); /* NULL: no memory */
void zero_pool_give(zero_pool *p, void *item);
