/* grow.h - arrays that grow by doubling. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The array with room for one item more than the n it holds, moved if need be. NULL, with
 * the array and *capacity left as they were, if there is no memory. */
static inline void *zero_grow(void *array, int64_t n, int64_t *capacity, size_t item)
{
    if (n < *capacity) return array;
    int64_t wanted = 2 * n + 64;
    void *larger = realloc(array, (size_t)wanted * item);
    if (larger) *capacity = wanted;
    return larger;
}
