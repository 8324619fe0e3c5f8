#include "data/merging.h"

#include "data/heap.h"

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

static struct zero_merge_slot *find_slot(const zero_merges *merges, zero_merge pair)
{
    const uint64_t key = (uint64_t)(uint32_t)pair.left << 32 | (uint32_t)pair.right;
    for (uint32_t i = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);; i++) {
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

/* ---- short pieces ---- */

enum { SHORT = 64, NO_MERGE = INT32_MAX };

/* The rank of the merge that joins tokens i and i + 1. */
static int32_t rank_at(const zero_merges *merges, const int32_t *ids, int64_t i)
{
    const struct zero_merge_slot *slot =
        find_slot(merges, (zero_merge){ids[i], ids[i + 1]});
    return slot->after == 0 ? NO_MERGE : slot->after;
}

/* Ranks of all pairs are kept, for a look into a large table takes longer than the scan. */
static int64_t scan(const zero_merges *merges, int64_t n, int32_t *ids)
{
    int32_t ranks[SHORT];
    for (int64_t i = 0; i + 1 < n; i++) ranks[i] = rank_at(merges, ids, i);
    while (n > 1) {
        int64_t at = 0;
        for (int64_t i = 1; i < n - 1; i++)
            if (ranks[i] < ranks[at]) at = i;
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
    zero_heap heap;
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
    ZERO_FAIL_IF(!zero_heap_push(&j->heap, (zero_heap_key)slot->after << 32 | (uint32_t)at),
                 ZERO_ERR_NOMEM, "no memory to merge a piece of text of %" PRId64 " bytes",
                 j->n);
    return ZERO_OK;
}

static zero_status join_all(joiner *j)
{
    for (int64_t i = 0; i < j->n; i++) {
        j->next[i] = (int32_t)i + 1;
        j->previous[i] = (int32_t)i - 1;
    }
    for (int64_t i = 0; i < j->n; i++) ZERO_TRY(push(j, (int32_t)i));
    while (j->heap.n > 0) {
        const zero_heap_key top = zero_heap_pop(&j->heap);
        const int32_t at = (int32_t)(uint32_t)top;
        if (j->ids[at] == GONE || j->next[at] >= j->n) continue;
        const struct zero_merge_slot *slot = slot_at(j, at);
        if ((zero_heap_key)slot->after != top >> 32) continue;
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

zero_status zero_merges_apply(const zero_merges *merges, int64_t n, int32_t *ids,
                              int64_t *left)
{
    if (n <= SHORT) {
        *left = scan(merges, n, ids);
        return ZERO_OK;
    }
    ZERO_FREED int32_t *places = NULL;
    if (n < INT32_MAX) places = malloc(2 * (size_t)n * sizeof *places);
    ZERO_TRY(zero_allocated(places,
                            "no memory to merge a piece of text of %" PRId64 " bytes", n));
    joiner j = {
        .merges = merges, .ids = ids, .n = n, .next = places, .previous = places + n};
    zero_status st = join_all(&j);
    free(j.heap.keys);
    *left = 0;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] != GONE) ids[(*left)++] = ids[i];
    return st;
}
