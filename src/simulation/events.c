#include "simulation/events.h"

#include <assert.h>
#include <stdlib.h>

void zero_events_destroy(zero_events *e)
{
    free(e->heap);
    *e = (zero_events){0};
}

static bool is_before(const zero_event *a, const zero_event *b)
{
    return a->time < b->time || (a->time == b->time && a->number < b->number);
}

static bool grow(zero_events *e)
{
    if (e->n < e->capacity) return true;
    int64_t capacity = 2 * e->capacity + 1024;
    zero_event *heap = realloc(e->heap, (size_t)capacity * sizeof *heap);
    if (!heap) return false;
    e->heap = heap;
    e->capacity = capacity;
    return true;
}

void zero_events_add(zero_events *e, double time, zero_event_kind kind, int32_t which)
{
    assert(time >= e->now);
    e->failed = e->failed || !grow(e);
    if (e->failed) return;
    zero_event event = {time, e->added++, (int32_t)kind, which};
    int64_t i = e->n++;
    for (; i > 0 && is_before(&event, &e->heap[(i - 1) / 4]); i = (i - 1) / 4)
        e->heap[i] = e->heap[(i - 1) / 4];
    e->heap[i] = event;
}

/* The first of the up to four events below event i. */
static int64_t first_below(const zero_events *e, int64_t i)
{
    int64_t first = 4 * i + 1;
    for (int64_t k = first + 1; k < 4 * i + 5 && k < e->n; k++)
        if (is_before(&e->heap[k], &e->heap[first])) first = k;
    return first;
}

bool zero_events_next(zero_events *e, zero_event *event)
{
    if (e->n == 0) return false;
    *event = e->heap[0];
    e->now = event->time;
    zero_event last = e->heap[--e->n];
    int64_t i = 0;
    for (int64_t k = 1; k < e->n; k = 4 * i + 1) {
        k = first_below(e, i);
        if (!is_before(&e->heap[k], &last)) break;
        e->heap[i] = e->heap[k];
        i = k;
    }
    if (e->n > 0) e->heap[i] = last;
    return true;
}
