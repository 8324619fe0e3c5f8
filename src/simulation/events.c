#include "simulation/events.h"

#include "base/grow.h"

static bool is_before(const zero_heap_item *a, const zero_heap_item *b)
{
    return a->key < b->key || (a->key == b->key && a->number < b->number);
}

bool zero_heap_add(zero_heap *heap, zero_heap_item item)
{
    if (!zero_grow(heap->list, heap->n, &heap->capacity)) return false;
    zero_heap_item *list = heap->list;
    int64_t i = heap->n++;
    for (; i > 0 && is_before(&item, &list[(i - 1) / 4]); i = (i - 1) / 4)
        list[i] = list[(i - 1) / 4];
    list[i] = item;
    return true;
}

zero_heap_item zero_heap_take(zero_heap *heap)
{
    zero_heap_item *list = heap->list, least = list[0], last = list[--heap->n];
    int64_t i = 0;
    for (int64_t first = 1; first < heap->n; first = 4 * i + 1) {
        int64_t k = first; /* the first of the up to four items below item i */
        for (int64_t other = first + 1; other < first + 4 && other < heap->n; other++)
            if (is_before(&list[other], &list[k])) k = other;
        if (!is_before(&list[k], &last)) break;
        list[i] = list[k];
        i = k;
    }
    list[i] = last;
    return least;
}

void zero_events_destroy(zero_events *e)
{
    free(e->heap.list);
    *e = (zero_events){0};
}

void zero_events_add(zero_events *e, double time, zero_event_kind kind, int32_t which)
{
    assert(time >= e->now);
    const uint64_t what = (uint64_t)kind << 32 | (uint32_t)which;
    e->failed =
        e->failed || !zero_heap_add(&e->heap, (zero_heap_item){time, e->added, what});
    if (!e->failed) e->added++;
}

bool zero_events_next(zero_events *e, zero_event *event)
{
    if (e->heap.n == 0) return false;
    const zero_heap_item next = zero_heap_take(&e->heap);
    *event =
        (zero_event){next.key, next.number, (int32_t)(next.what >> 32), (int32_t)next.what};
    e->now = event->time;
    return true;
}
