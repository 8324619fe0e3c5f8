#include "data/merging.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"

/* Open addressing. */
struct zero_merge_slot {
    zero_merge pair;
    int32_t after; /* the merge's rank + 1; 0: the slot is empty */
    int32_t token;
};

zero_status zero_merges_init(zero_merges *merges, int32_t n)
{
    uint32_t n_slots = 2;
    while (n_slots < 2 * (uint32_t)n) n_slots *= 2;
    merges->mask = n_slots - 1;
    return zero_new(&merges->slots, n_slots, "places for merges");
}

void zero_merges_destroy(zero_merges *merges)
{
    free(merges->slots);
    *merges = (zero_merges){0};
}

static uint32_t hash_pair(zero_merge pair)
{
    uint64_t key = (uint64_t)(uint32_t)pair.left << 32 | (uint32_t)pair.right;
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static struct zero_merge_slot *find_slot(const zero_merges *merges, zero_merge pair)
{
    for (uint32_t i = hash_pair(pair);; i++) {
        struct zero_merge_slot *slot = &merges->slots[i & merges->mask];
        if (slot->after == 0 ||
            (slot->pair.left == pair.left && slot->pair.right == pair.right))
            return slot;
    }
}

bool zero_merges_add(zero_merges *merges, zero_merge pair, int32_t rank, int32_t token)
{
    struct zero_merge_slot *slot = find_slot(merges, pair);
    if (slot->after != 0) return false;
    *slot = (struct zero_merge_slot){pair, rank + 1, token};
    return true;
}

void zero_merges_list(const zero_merges *merges, int32_t n, zero_merge *pairs,
                      int32_t *tokens)
{
    for (uint32_t i = 0; i <= merges->mask; i++) {
        const struct zero_merge_slot *slot = &merges->slots[i];
        if (slot->after == 0 || slot->after > n) continue;
        pairs[slot->after - 1] = slot->pair;
        tokens[slot->after - 1] = slot->token;
    }
}

/* ---- short pieces ---- */

enum { SHORT = 64, NO_MERGE = INT32_MAX };

/* The rank of the merge that joins tokens i and i + 1. */
static int32_t rank_at(const zero_merges *merges, const int32_t *ids, int64_t i)
{
    const struct zero_merge_slot *slot =
        find_slot(merges, (zero_merge){ids[i], ids[i + 1]});
    return slot->after == 0 ? NO_MERGE : slot->after;
}

static int64_t earliest(const int32_t *ranks, int64_t n)
{
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (ranks[i] < ranks[at]) at = i;
    return at;
}

/* Ranks of all pairs are kept, for a look into a large table takes longer than the scan. */
static int64_t scan(const zero_merges *merges, int64_t n, int32_t *ids)
{
    int32_t ranks[SHORT];
    for (int64_t i = 0; i + 1 < n; i++) ranks[i] = rank_at(merges, ids, i);
    while (n > 1) {
        int64_t at = earliest(ranks, n - 1);
        if (ranks[at] == NO_MERGE) break;
        ids[at] = find_slot(merges, (zero_merge){ids[at], ids[at + 1]})->token;
        memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 2) * sizeof *ids);
        memmove(ranks + at, ranks + at + 1, (size_t)(n - at - 2) * sizeof *ranks);
        n--;
        if (at > 0) ranks[at - 1] = rank_at(merges, ids, at - 1);
        if (at + 1 < n) ranks[at] = rank_at(merges, ids, at);
    }
    return n;
}

/* ---- long pieces ---- */

/* The tokens left are a list; joined ones are marked by GONE. An item of the heap is a
 * merge's rank and the place of its left token, in one number: the smallest is the next to
 * do. It is out of date if the pair at that place is not this merge's any more. */
#define GONE INT32_MIN

typedef struct {
    const zero_merges *merges;
    int32_t *ids;
    int32_t *next, *previous; /* places; n and -1 end the list */
    int64_t n;
    uint64_t *heap;
    int64_t n_heap, capacity;
} joiner;

static const struct zero_merge_slot *slot_at(const joiner *j, int32_t at)
{
    return find_slot(j->merges, (zero_merge){j->ids[at], j->ids[j->next[at]]});
}

static zero_status push(joiner *j, int32_t at)
{
    if (at < 0 || j->next[at] >= j->n) return ZERO_OK;
    const struct zero_merge_slot *slot = slot_at(j, at);
    if (slot->after == 0) return ZERO_OK;
    if (!zero_grow(j->heap, j->n_heap, &j->capacity))
        return zero_fail(ZERO_ERR_NOMEM,
                         "no memory to merge a piece of text of %" PRId64 " bytes", j->n);
    uint64_t *heap = j->heap;
    int64_t k = j->n_heap++;
    uint64_t value = (uint64_t)slot->after << 32 | (uint32_t)at;
    for (; k > 0 && heap[(k - 1) / 2] > value; k = (k - 1) / 2) heap[k] = heap[(k - 1) / 2];
    heap[k] = value;
    return ZERO_OK;
}

static uint64_t pop(joiner *j)
{
    uint64_t *heap = j->heap, top = heap[0], last = heap[--j->n_heap];
    int64_t k = 0;
    for (int64_t child; (child = 2 * k + 1) < j->n_heap; k = child) {
        if (child + 1 < j->n_heap && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[k] = heap[child];
    }
    heap[k] = last;
    return top;
}

static zero_status join_all(joiner *j)
{
    for (int64_t i = 0; i < j->n; i++) {
        j->next[i] = (int32_t)i + 1;
        j->previous[i] = (int32_t)i - 1;
    }
    for (int64_t i = 0; i < j->n; i++) ZERO_TRY(push(j, (int32_t)i));
    while (j->n_heap > 0) {
        uint64_t top = pop(j);
        int32_t at = (int32_t)(uint32_t)top;
        if (j->ids[at] == GONE || j->next[at] >= j->n) continue;
        const struct zero_merge_slot *slot = slot_at(j, at);
        if ((uint64_t)slot->after != top >> 32) continue;
        int32_t right = j->next[at];
        j->ids[at] = slot->token;
        j->ids[right] = GONE;
        j->next[at] = j->next[right];
        if (j->next[at] < j->n) j->previous[j->next[at]] = at;
        ZERO_TRY(push(j, at));
        ZERO_TRY(push(j, j->previous[at]));
    }
    return ZERO_OK;
}

static int64_t close_gaps(int64_t n, int32_t *ids)
{
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] != GONE) ids[left++] = ids[i];
    return left;
}

zero_status zero_merges_apply(const zero_merges *merges, int64_t n, int32_t *ids,
                              int64_t *left)
{
    if (n <= SHORT) {
        *left = scan(merges, n, ids);
        return ZERO_OK;
    }
    joiner j = {.merges = merges, .ids = ids, .n = n};
    zero_status st = ZERO_OK;
    if (n < INT32_MAX) j.next = malloc(2 * (size_t)n * sizeof *j.next);
    if (!j.next)
        st = zero_fail(ZERO_ERR_NOMEM,
                       "no memory to merge a piece of text of %" PRId64 " bytes", n);
    if (st == ZERO_OK) {
        j.previous = j.next + n;
        st = join_all(&j);
    }
    free(j.next);
    free(j.heap);
    if (st != ZERO_OK) return st;
    *left = close_gaps(n, ids);
    return ZERO_OK;
}
