#include "simulation/events.h"

#include <assert.h>
#include <stdlib.h>

#include "base/grow.h"

void zero_events_destroy(zero_events *e)
{
    free(e->heap);
    *e = (zero_events){0};
}

static bool is_before(const zero_event *a, const zero_event *b)
{
    return a->time < b->time || (a->time == b->time && a->number < b->number);
}

void zero_events_add(zero_events *e, double time, zero_event_kind kind, int32_t which)
{
    assert(time >= e->now);
    e->failed = e->failed || !zero_grow(e->heap, e->n, &e->capacity);
    if (e->failed) return;
    zero_event *heap = e->heap;
    zero_event event = {time, e->added++, (int32_t)kind, which};
    int64_t i = e->n++;
    for (; i > 0 && is_before(&event, &heap[(i - 1) / 4]); i = (i - 1) / 4)
        heap[i] = heap[(i - 1) / 4];
    heap[i] = event;
}

bool zero_events_next(zero_events *e, zero_event *event)
{
    if (e->n == 0) return false;
    *event = e->heap[0];
    e->now = event->time;
    zero_event last = e->heap[--e->n];
    int64_t i = 0;
    for (int64_t first = 1; first < e->n; first = 4 * i + 1) {
        int64_t k = first; /* the first of the up to four events below event i */
        for (int64_t other = first + 1; other < first + 4 && other < e->n; other++)
            if (is_before(&e->heap[other], &e->heap[k])) k = other;
        if (!is_before(&e->heap[k], &last)) break;
        e->heap[i] = e->heap[k];
        i = k;
    }
    if (e->n > 0) e->heap[i] = last;
    return true;
}
