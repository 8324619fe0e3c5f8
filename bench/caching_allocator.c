#include "caching_allocator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"

static zero_status no_memory(const caching_allocator *a)
{
    return zero_fail(ZERO_ERR_NOMEM, "no memory for block %d of the model of an allocator",
                     a->n_blocks);
}

/* ---- free blocks ---- */

static caching_pool *pool_of(caching_allocator *a, bool is_small)
{
    return is_small ? &a->small : &a->large;
}

static bool is_before(const caching_block *b, size_t bytes, size_t address)
{
    return b->bytes < bytes || (b->bytes == bytes && b->address < address);
}

/* The place of the first free block that is not before this one. */
static int find_place(const caching_allocator *a, const caching_pool *pool, size_t bytes,
                      size_t address)
{
    int low = 0, high = pool->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (is_before(&a->blocks[pool->ids[middle]], bytes, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static zero_status add_free(caching_allocator *a, int id)
{
    caching_block *b = &a->blocks[id];
    caching_pool *pool = pool_of(a, b->is_small);
    if (!zero_grow(pool->ids, pool->n, &pool->capacity)) return no_memory(a);
    int place = find_place(a, pool, b->bytes, b->address), *ids = pool->ids;
    memmove(ids + place + 1, ids + place, (size_t)(pool->n - place) * sizeof *ids);
    ids[place] = id;
    pool->n++;
    b->is_used = false;
    return ZERO_OK;
}

static void remove_free(caching_allocator *a, int id)
{
    const caching_block *b = &a->blocks[id];
    caching_pool *pool = pool_of(a, b->is_small);
    int place = find_place(a, pool, b->bytes, b->address);
    assert(pool->ids[place] == id);
    pool->n--;
    memmove(pool->ids + place, pool->ids + place + 1,
            (size_t)(pool->n - place) * sizeof *pool->ids);
}

/* ---- blocks ---- */

static zero_status new_block(caching_allocator *a, const caching_block *b, int *id)
{
    if (a->spare != CACHING_NONE) {
        *id = a->spare;
        a->spare = a->blocks[*id].next;
    } else {
        if (!zero_grow(a->blocks, a->n_blocks, &a->block_capacity)) return no_memory(a);
        *id = a->n_blocks++;
    }
    a->blocks[*id] = *b;
    return ZERO_OK;
}

static void spare_block(caching_allocator *a, int id)
{
    a->blocks[id] = (caching_block){.next = a->spare};
    a->spare = id;
}

static bool is_whole_segment(const caching_block *b)
{
    return b->previous == CACHING_NONE && b->next == CACHING_NONE;
}

/* The rest becomes a free block after this one. */
static zero_status split(caching_allocator *a, int id, size_t bytes)
{
    caching_block whole = a->blocks[id];
    caching_block rest = {.address = whole.address + bytes,
                          .bytes = whole.bytes - bytes,
                          .previous = id,
                          .next = whole.next,
                          .is_small = whole.is_small};
    bool may = rest.bytes > 0 &&
               (whole.is_small ? rest.bytes >= CACHING_ROUND : rest.bytes > CACHING_SMALL);
    int after = CACHING_NONE; /* gcc 14 does not see that new_block() sets it */
    if (!may) return ZERO_OK;
    ZERO_TRY(new_block(a, &rest, &after));
    if (rest.next != CACHING_NONE) a->blocks[rest.next].previous = after;
    a->blocks[id].next = after;
    a->blocks[id].bytes = bytes;
    return add_free(a, after);
}

/* Block `after` becomes a part of block `id`, its neighbour. */
static void absorb(caching_allocator *a, int id, int after)
{
    caching_block *b = &a->blocks[id];
    b->bytes += a->blocks[after].bytes;
    b->next = a->blocks[after].next;
    if (b->next != CACHING_NONE) a->blocks[b->next].previous = id;
    spare_block(a, after);
}

static bool is_free(const caching_allocator *a, int id)
{
    return id != CACHING_NONE && !a->blocks[id].is_used;
}

/* ---- segments ---- */

static size_t segment_for(size_t bytes)
{
    if (bytes <= CACHING_SMALL) return CACHING_SMALL_SEGMENT;
    if (bytes < CACHING_LARGE) return CACHING_LARGE_SEGMENT;
    return zero_round_up_size(bytes, CACHING_GRAIN);
}

static void return_pool(caching_allocator *a, caching_pool *pool)
{
    int kept = 0;
    for (int k = 0; k < pool->n; k++) {
        int id = pool->ids[k];
        if (!is_whole_segment(&a->blocks[id])) {
            pool->ids[kept++] = id;
            continue;
        }
        a->reserved -= a->blocks[id].bytes;
        spare_block(a, id);
    }
    pool->n = kept;
}

static void return_segments(caching_allocator *a)
{
    return_pool(a, &a->small);
    return_pool(a, &a->large);
    a->returns++;
}

/* A new segment, one free block that is in no list; CACHING_NONE if the device is full. */
static zero_status take_segment(caching_allocator *a, size_t bytes, int *id)
{
    size_t wanted = segment_for(bytes);
    if (wanted > a->limit - a->reserved) return_segments(a);
    *id = CACHING_NONE;
    if (wanted > a->limit - a->reserved) return ZERO_OK;
    caching_block b = {.address = a->address,
                       .bytes = wanted,
                       .previous = CACHING_NONE,
                       .next = CACHING_NONE,
                       .is_small = bytes <= CACHING_SMALL};
    ZERO_TRY(new_block(a, &b, id));
    a->address += wanted;
    a->reserved += wanted;
    a->most_reserved = zero_max_size(a->most_reserved, a->reserved);
    return ZERO_OK;
}

/* ---- requests ---- */

void caching_allocator_init(caching_allocator *a, size_t limit)
{
    *a = (caching_allocator){.limit = limit, .spare = CACHING_NONE};
}

void caching_allocator_destroy(caching_allocator *a)
{
    free(a->blocks);
    free(a->small.ids);
    free(a->large.ids);
    caching_allocator_init(a, 0);
}

zero_status caching_allocator_take(caching_allocator *a, size_t bytes, int *id)
{
    size_t rounded = zero_round_up_size(bytes, CACHING_ROUND);
    const caching_pool *pool = pool_of(a, rounded <= CACHING_SMALL);
    int place = find_place(a, pool, rounded, 0);
    if (place < pool->n) {
        *id = pool->ids[place];
        remove_free(a, *id);
    } else {
        ZERO_TRY(take_segment(a, rounded, id));
        if (*id == CACHING_NONE) return ZERO_OK;
    }
    a->blocks[*id].is_used = true;
    a->blocks[*id].requested = bytes;
    ZERO_TRY(split(a, *id, rounded));
    a->used += a->blocks[*id].bytes;
    a->requested += bytes;
    return ZERO_OK;
}

zero_status caching_allocator_free(caching_allocator *a, int id)
{
    int previous = a->blocks[id].previous, next = a->blocks[id].next;
    assert(a->blocks[id].is_used);
    a->used -= a->blocks[id].bytes;
    a->requested -= a->blocks[id].requested;
    if (is_free(a, next)) {
        remove_free(a, next);
        absorb(a, id, next);
    }
    if (is_free(a, previous)) {
        remove_free(a, previous);
        absorb(a, previous, id);
        id = previous;
    }
    return add_free(a, id);
}
