/* trace_events.h - the events of a trace, one by one: for trace_read.c. */
#pragma once

#include <jansson.h>

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
    int64_t *slots;   /* [n_slots] 1 + index of the trace's texts, by hash */
    int64_t n_slots;
    zero_trace_wait *waits;
    int64_t n_waits, wait_room;
} zero_trace_reader;

/* Takes one event. ZERO_ERR_FORMAT, ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_trace_take(zero_trace_reader *r, const json_t *event);
void zero_trace_reader_destroy(zero_trace_reader *r); /* not what it has read */

/* ---- trace_heading.c: for trace_events.c ---- */

#define ONLY(r, object, ...) \
    zero_json_only((r)->where, (object), \
                   (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)), \
                   (const char *const[]){__VA_ARGS__})

zero_status zero_trace_no_memory(const zero_trace_reader *r);
/* A member's text, which the trace owns. */
ZERO_NODISCARD zero_status zero_trace_text(zero_trace_reader *r, const json_t *object,
                                           const char *key, const char **kept);
ZERO_NODISCARD zero_status zero_trace_int(const zero_trace_reader *r, const json_t *object,
                                          const char *key, int64_t least, int64_t most,
                                          int *value);
/* A member's time in units of `unit` nanoseconds. */
ZERO_NODISCARD zero_status zero_trace_time(const zero_trace_reader *r, const json_t *object,
                                           const char *key, double unit, int64_t *nano);
/* An event of phase M. */
ZERO_NODISCARD zero_status zero_trace_take_name(zero_trace_reader *r, const json_t *event);
/* The rank of an event, which has its name and is on the event's node; *row: 0, or a row below it. */
ZERO_NODISCARD zero_status zero_trace_find_rank(const zero_trace_reader *r,
                                                const json_t *event,
                                                zero_traced_rank **rank, int *row);
zero_traced_row *zero_trace_find_row(const zero_traced_rank *rank, int number);

/* ---- trace_order.c ---- */

/* Sorts, finds the instructions of waits, and checks that spans do not overlap and that no two flights
 * of a rank are the same. ZERO_ERR_FORMAT naming the line. */
ZERO_NODISCARD zero_status zero_trace_order(zero_trace_reader *r);
