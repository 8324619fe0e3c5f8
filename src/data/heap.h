/* heap.h - a heap of numbers of 128 bits, the smallest first. */
#pragma once

#include "base/grow.h"

__extension__ typedef unsigned __int128 zero_heap_key;

typedef struct {
    zero_heap_key *keys; /* [n] owned: free() */
    int64_t n, capacity;
} zero_heap;

/* False without memory; there is room where one was popped before. */
static inline bool zero_heap_push(zero_heap *heap, zero_heap_key key)
{
    if (!zero_grow(heap->keys, heap->n, &heap->capacity)) return false;
    zero_heap_key *keys = heap->keys;
    int64_t k = heap->n++;
    for (; k > 0 && keys[(k - 1) / 2] > key; k = (k - 1) / 2) keys[k] = keys[(k - 1) / 2];
    keys[k] = key;
    return true;
}

/* n > 0 */
static inline zero_heap_key zero_heap_pop(zero_heap *heap)
{
    zero_heap_key *keys = heap->keys, top = keys[0], last = keys[--heap->n];
    int64_t k = 0;
    for (int64_t child; (child = 2 * k + 1) < heap->n; k = child) {
        if (child + 1 < heap->n && keys[child + 1] < keys[child]) child++;
        if (keys[child] >= last) break;
        keys[k] = keys[child];
    }
    keys[k] = last;
    return top;
}
