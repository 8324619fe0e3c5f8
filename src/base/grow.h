/* grow.h - arrays: new ones, and ones that grow by doubling. */
#pragma once

#include "base/fail.h"

/* Sets a pointer to n zeroed items, to be freed with free(); NULL and a failure without
 * memory: "no memory for 12 parts of a text", or "no memory for a tokenizer" if n is 1. */
#define zero_new(pointer, n, what) \
    zero_new_at(__FILE__, __LINE__, (pointer), (size_t)(n), sizeof **(pointer), (what))
zero_status zero_new_at(const char *file, int line, void *pointer, size_t n, size_t item,
                        const char *what);

/* Gives an array, a pointer, room for one item more than the n it holds: moves it if need
 * be. False, with the array and *capacity left as they were, if there is no memory. */
#define zero_grow(array, n, capacity) \
    zero_grow_at(&(array), (n), (capacity), sizeof *(array))
static inline bool zero_grow_at(void *pointer, int64_t n, int64_t *capacity, size_t item)
{
    void *array;
    int64_t wanted = 2 * n + 64;
    if (n < *capacity) return true;
    memcpy(&array, pointer, sizeof array); /* whatever it points to */
    array = realloc(array, (size_t)wanted * item);
    if (!array) return false;
    memcpy(pointer, &array, sizeof array);
    *capacity = wanted;
    return true;
}
