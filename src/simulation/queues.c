#include "simulation/queues.h"

#include <stdlib.h>

/* A table of a power of two places, at most half of them taken. A queue is at the first
 * free place from that of its key on. */

void zero_queues_destroy(zero_queues *q)
{
    free(q->table);
    *q = (zero_queues){0};
}

static int64_t place_of(const zero_queues *q, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    return (int64_t)(mixed >> 20 & (uint64_t)(q->capacity - 1));
}

/* Where the queue is, or would be. */
static zero_queue *find_place(const zero_queues *q, uint64_t key)
{
    int64_t i = place_of(q, key);
    while (q->table[i].first && q->table[i].key != key) i = (i + 1) & (q->capacity - 1);
    return &q->table[i];
}

zero_queue *zero_queues_find(const zero_queues *q, uint64_t key)
{
    zero_queue *found = q->capacity > 0 ? find_place(q, key) : NULL;
    return found && found->first ? found : NULL;
}

bool zero_queues_append(zero_queues *q, uint64_t key, zero_queued *last)
{
    if (2 * q->n >= q->capacity) {
        zero_queues larger = {.n = q->n,
                              .capacity = q->capacity > 0 ? 2 * q->capacity : 256};
        larger.table = calloc((size_t)larger.capacity, sizeof *larger.table);
        if (!larger.table) return false;
        for (int64_t i = 0; i < q->capacity; i++)
            if (q->table[i].first) *find_place(&larger, q->table[i].key) = q->table[i];
        free(q->table);
        *q = larger;
    }
    zero_queue *queue = find_place(q, key);
    last->next = NULL;
    if (queue->first)
        queue->last->next = last;
    else
        *queue = (zero_queue){.key = key, .first = last}, q->n++;
    queue->last = last;
    return true;
}

/* Queues after an empty one move up to the gap, unless they would come before the place of
 * their key. */
void *zero_queues_take(zero_queues *q, zero_queue *queue)
{
    zero_queued *taken = queue->first;
    int64_t mask = q->capacity - 1, gap = queue - q->table;
    queue->first = taken->next;
    if (queue->first) return taken;
    for (int64_t i = (gap + 1) & mask; q->table[i].first; i = (i + 1) & mask) {
        int64_t home = place_of(q, q->table[i].key);
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        q->table[gap] = q->table[i];
        gap = i;
    }
    q->table[gap].first = NULL;
    q->n--;
    return taken;
}

/* ---- pools ---- */

#define BLOCK 64 /* items, after a pointer to another block */

void zero_pool_destroy(zero_pool *p)
{
    for (void **block = p->blocks, **next; block; block = next) {
        next = *block;
        free(block);
    }
    p->blocks = p->unused = NULL;
}

void zero_pool_give(zero_pool *p, void *item)
{
    *(void **)item = p->unused;
    p->unused = item;
}

void *zero_pool_take(zero_pool *p)
{
    if (!p->unused) {
        void **block = malloc(16 + BLOCK * p->size);
        if (!block) return NULL;
        *block = p->blocks;
        p->blocks = block;
        for (size_t i = BLOCK; i-- > 0;)
            zero_pool_give(p, (char *)block + 16 + i * p->size);
    }
    void **item = p->unused;
    p->unused = *item;
    return item;
}
