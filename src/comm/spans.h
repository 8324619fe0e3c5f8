/* spans.h - when the collectives of a rank were in flight: a ring that exists before any
 * begins.
 *
 * A span is written when its collective ends, which may be in a poll of the progress
 * thread; all functions here take the group's lock. The oldest spans are overwritten. While
 * recording is off nothing is written, but what began while it was on is written when it
 * ends.
 *
 * Two ranks of a group have the same collective in `sequence`, `part` and the group's
 * member (member.h). */
#pragma once

#include "comm/group.h"

typedef struct {
    double begun, ended;
    int64_t sequence; /* in its group */
    int64_t sent;     /* bytes that this rank sent */
    int64_t label;    /* the caller's: zero_collective.label */
    int32_t kind;     /* zero_collective_kind */
    int32_t part;     /* zero_family_part of its group */
} zero_comm_span;

typedef struct zero_comm_spans {
    zero_comm_span *ring; /* [capacity], owned */
    int64_t capacity;
    int64_t n; /* written so far; number k lies in ring[k % capacity] */
    bool is_on;
} zero_comm_spans;

/* Local. capacity >= 1. ZERO_ERR_NOMEM; release with _destroy. */
zero_status zero_comm_spans_init(zero_comm_spans *s, int64_t capacity);
void zero_comm_spans_destroy(zero_comm_spans *s); /* accepts a zeroed one */

/* Local. From here on collectives of the group and its family are recorded while the ring
 * is on; `s` is borrowed until another one, or NULL, is attached. `comm` is not a part of a
 * family (divide.h). */
void zero_comm_spans_attach(zero_comm *comm, zero_comm_spans *s);
void zero_comm_spans_switch(zero_comm *comm, bool is_on);

/* Copies the spans that the ring has, in the order in which they ended, and then those of
 * recorded collectives that are still in flight, which end `now`. Copies at most `room` and
 * returns their number; *open of them are in flight. Local. */
int64_t zero_comm_spans_copy(zero_comm *comm, double now, int64_t room, zero_comm_span *out,
                             int64_t *open);

/* The collective ends or begins. The caller holds the lock. For flight.c. */
void zero_comm_spans_begin(zero_collective *op);
void zero_comm_spans_end(const zero_collective *op);
