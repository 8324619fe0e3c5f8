/* events.h - what happens next: events in the order of their times.
 *
 * Events of one time come in the order in which they were added, so a simulation does not
 * depend on how the queue is built. */
#pragma once

#include "base/fail.h"

/* What comes next: the item with the least key, of equal ones the least number. */
typedef struct {
    double key;
    int64_t number;
    uint64_t what; /* the owner's */
} zero_heap_item;

typedef struct {
    zero_heap_item *list; /* [n]: no item is before its parent, (i - 1) / 4; owned */
    int64_t n, capacity;
} zero_heap;

/* False: no memory. */
bool zero_heap_add(zero_heap *heap, zero_heap_item item);
/* n > 0. */
zero_heap_item zero_heap_take(zero_heap *heap);

typedef struct {
    double time;    /* seconds */
    int64_t number; /* how many were added before */
    int32_t kind;   /* whose event it is: zero_event_kind */
    int32_t which;  /* as the owner of the kind numbers them */
} zero_event;

typedef enum {
    ZERO_EVENT_NETWORK, /* `which`: the network's own number */
    ZERO_EVENT_RANK,    /* rank `which` goes on */
} zero_event_kind;

typedef struct {
    zero_heap heap;
    int64_t added;
    double now;  /* the time of the last event that was taken */
    bool failed; /* no memory: an event is missing */
} zero_events;

/* Accepts a zeroed struct, which is an empty queue. */
void zero_events_destroy(zero_events *e);

/* time >= e->now. A failure is kept in e->failed. */
void zero_events_add(zero_events *e, double time, zero_event_kind kind, int32_t which);
/* Takes the next event; false if the queue is empty. */
bool zero_events_next(zero_events *e, zero_event *event);
