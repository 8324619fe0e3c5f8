/* queues.h - queues that are found by a key, such as a sender and a receiver. A queue is
 * there while something is in it, so memory is that of what waits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t key;
    int32_t first, last; /* as the owner numbers what waits */
    int64_t n;           /* how much waits; 0: no queue is here */
} zero_queue;

typedef struct {
    zero_queue *table; /* [capacity]; owned */
    int64_t n, capacity;
} zero_queues;

void zero_queues_destroy(zero_queues *q); /* accepts a zeroed struct, which has no queue */

/* The queue, or NULL. Pointers are valid until the next call that adds or removes. */
zero_queue *zero_queues_find(const zero_queues *q, uint64_t key);
/* The queue, or a new one with n = 0, which the caller fills at once. NULL: no memory. */
zero_queue *zero_queues_add(zero_queues *q, uint64_t key);
/* Removes a queue that has become empty. */
void zero_queues_remove(zero_queues *q, zero_queue *queue);
