/* trace_events.h - the events of a trace, one by one: for trace_read.c. */
#pragma once

#include "trace/traced.h"

/* A wait within an instruction, which it finds when all lines have been read. */
typedef struct {
    int32_t rank; /* index of the trace's ranks */
    int64_t begin, end, line;
} zero_trace_wait;

typedef struct {
    zero_traced *trace;
    char where[600]; /* path and line, for messages */
    int64_t line;
    bool has_head;
    int32_t *rank_at; /* [world] 1 + index of the trace's ranks; 0: not there */
    zero_trace_wait *waits;
    int64_t n_waits, wait_room;
} zero_trace_reader;

/* Takes one event. ZERO_ERR_FORMAT, ZERO_ERR_NOMEM. */
zero_status zero_trace_take(zero_trace_reader *r, const json_t *event);
