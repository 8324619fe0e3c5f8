/* caching_allocator.h - a model of PyTorch's caching allocator: what it would take of
 * memory.
 *
 *     request      rounded up to           from a segment of
 *     <= 1 MiB     512 bytes               2 MiB, the small pool
 *     < 10 MiB     512 bytes               20 MiB, the large pool
 *     others       512 bytes               their own size, rounded up to 2 MiB; large pool
 *
 * A request gets the smallest free block of its pool that holds it, of equal ones that
 * of the oldest segment. The rest is split off if it has 512 bytes (small pool) or more
 * than 1 MiB (large pool); else it is part of the block. If no block fits, a segment is
 * taken from the device. If the device is full, all segments without a block in use are
 * returned to it first, once. A block that is freed merges with free neighbours of its
 * segment, which stays.
 *
 * A device counts bytes only: it can always give what it has left. Streams, garbage
 * collection, a largest size of blocks to be split, and segments that grow are off, as
 * in PyTorch by default. No memory is touched.
 * Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/status.h"

#define CACHING_ROUND         ((size_t)512)     /* sizes are multiples of it */
#define CACHING_SMALL         ((size_t)1 << 20) /* the largest request of the small pool */
#define CACHING_SMALL_SEGMENT ((size_t)2 << 20)
#define CACHING_LARGE         ((size_t)10 << 20) /* larger ones have a segment each */
#define CACHING_LARGE_SEGMENT ((size_t)20 << 20)
#define CACHING_GRAIN         ((size_t)2 << 20) /* all segments are multiples of it */

#define CACHING_NONE (-1)

typedef struct {
    size_t address; /* no two segments ever have one address */
    size_t bytes;
    size_t requested;   /* of a block in use */
    int previous, next; /* neighbours in the segment, or CACHING_NONE */
    bool is_small, is_used;
} caching_block;

/* Free blocks of a pool, sorted by size, then by address. */
typedef struct {
    int *ids;
    int n;
    int64_t capacity;
} caching_pool;

typedef struct {
    size_t limit;     /* bytes of the device */
    size_t reserved;  /* of all segments */
    size_t used;      /* of blocks in use */
    size_t requested; /* of these what was asked for */
    size_t most_reserved;
    int64_t returns;       /* times that the device was full and got segments back */
    size_t address;        /* of the next segment */
    caching_block *blocks; /* [n_blocks], owned; those that merged away are spare */
    int n_blocks, spare;   /* spare: a list through `next` */
    int64_t block_capacity;
    caching_pool small, large; /* owned */
} caching_allocator;

void caching_allocator_init(caching_allocator *a, size_t limit);
void caching_allocator_destroy(caching_allocator *a);

/* *id becomes the block of a request of at least 1 byte; CACHING_NONE if the device is
 * full, which leaves the blocks in use as they were. ZERO_ERR_NOMEM if this model itself
 * has no memory. */
zero_status caching_allocator_take(caching_allocator *a, size_t bytes, int *id);
/* Frees a block in use. ZERO_ERR_NOMEM. */
zero_status caching_allocator_free(caching_allocator *a, int id);
