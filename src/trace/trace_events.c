#include "trace/trace_events.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "io/json_input.h"
#include "trace/trace_file.h"

#define MICRO      1e3 /* nanoseconds in the unit of times */
#define MOST_BYTES (INT64_C(1) << 56)

/* A whole number that may be missing: then it is -1. */
static zero_status read_if(const zero_trace_reader *r, const json_t *object,
                           const char *key, int64_t most, int64_t *value)
{
    *value = -1;
    if (!json_object_get(object, key)) return ZERO_OK;
    return zero_json_whole(r->where, object, key, 0, most, value);
}

/* ---- spans ---- */

static const char *const kinds[ZERO_TRACED_KINDS] = {[ZERO_TRACED_COMPUTE] = "compute",
                                                     [ZERO_TRACED_COMMUNICATION] =
                                                         "communication",
                                                     [ZERO_TRACED_DISK] = "disk",
                                                     [ZERO_TRACED_OTHER] = "other"};

static zero_status read_kind(const zero_trace_reader *r, const char *category,
                             zero_traced_kind *kind)
{
    char shown[ZERO_JSON_SHOWN];
    for (int k = 0; k < ZERO_TRACED_KINDS; k++)
        if (strcmp(category, kinds[k]) == 0) {
            *kind = (zero_traced_kind)k;
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"cat\": expected compute, communication, disk, other, wait or "
                     "collective, "
                     "found %s",
                     r->where, zero_json_shown(category, shown));
}

static zero_status read_span(zero_trace_reader *r, const json_t *event,
                             const char *category, zero_traced_span *s)
{
    const json_t *args;
    int64_t group;
    const zero_traced *t = r->trace;
    ZERO_TRY(zero_trace_text(r, event, "name", &s->name));
    ZERO_TRY(read_kind(r, category, &s->kind));
    ZERO_TRY(zero_json_object(r->where, event, "args", &args));
    ZERO_TRY(ONLY(r, args, "step", "at", "group", "bytes", "live"));
    ZERO_TRY(
        zero_json_whole(r->where, args, "step", t->first_step, t->last_step, &s->step));
    ZERO_TRY(zero_trace_int(r, args, "at", 0, INT_MAX, &s->at));
    ZERO_TRY(read_if(r, args, "group", INT_MAX, &group));
    ZERO_TRY(read_if(r, args, "bytes", MOST_BYTES, &s->bytes));
    ZERO_TRY(zero_json_whole(r->where, args, "live", 0, MOST_BYTES, &s->live));
    s->group = (int)group;
    s->line = r->line;
    return ZERO_OK;
}

static zero_status add_span(const zero_trace_reader *r, const zero_traced_span *span,
                            zero_traced_span **list, int64_t *n, int64_t *room)
{
    zero_traced_span *larger = zero_grow(*list, *n, room, sizeof *larger);
    if (!larger) return zero_trace_no_memory(r);
    *list = larger;
    larger[(*n)++] = *span;
    return ZERO_OK;
}

static zero_status take_wait(zero_trace_reader *r, const zero_traced_rank *rank, int row,
                             const zero_traced_span *span)
{
    if (row != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected a wait on a rank, found one on a row", r->where);
    zero_trace_wait *larger =
        zero_grow(r->waits, r->n_waits, &r->wait_room, sizeof *larger);
    if (!larger) return zero_trace_no_memory(r);
    r->waits = larger;
    larger[r->n_waits++] = (zero_trace_wait){.rank = (int32_t)(rank - r->trace->ranks),
                                             .begin = span->begin,
                                             .end = span->end,
                                             .line = r->line};
    return ZERO_OK;
}

static zero_status add_flight(const zero_trace_reader *r, zero_traced_rank *rank,
                              const zero_traced_flight *flight)
{
    void *larger =
        zero_grow(rank->flights, rank->n_flights, &rank->flight_room, sizeof *flight);
    if (!larger) return zero_trace_no_memory(r);
    rank->flights = larger;
    rank->flights[rank->n_flights++] = *flight;
    return ZERO_OK;
}

static zero_status take_flight(zero_trace_reader *r, const json_t *event, int row,
                               zero_traced_rank *rank, const zero_traced_span *span)
{
    zero_traced_flight f = {
        .begin = span->begin, .end = span->end, .row = row, .line = r->line};
    const json_t *args;
    if (row == 0 || row >= ZERO_TRACE_QUEUES)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: expected a collective on a row of them, from 1 to %d, found it "
            "on row %d",
            r->where, ZERO_TRACE_QUEUES - 1, row);
    ZERO_TRY(zero_trace_text(r, event, "name", &f.name));
    ZERO_TRY(zero_json_object(r->where, event, "args", &args));
    ZERO_TRY(ONLY(r, args, "step", "sequence", "first", "sent"));
    ZERO_TRY(zero_json_whole(r->where, args, "step", 0, r->trace->last_step, &f.step));
    ZERO_TRY(zero_json_whole(r->where, args, "sequence", 0, MOST_BYTES, &f.sequence));
    ZERO_TRY(zero_trace_int(r, args, "first", 0, r->trace->world - 1, &f.first));
    ZERO_TRY(zero_json_whole(r->where, args, "sent", 0, MOST_BYTES, &f.sent));
    return add_flight(r, rank, &f);
}

static zero_status take_row(const zero_trace_reader *r, int row,
                            const zero_traced_rank *rank, const zero_traced_span *span)
{
    zero_traced_row *below = zero_trace_find_row(rank, row);
    if (below) return add_span(r, span, &below->spans, &below->n, &below->room);
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: expected the thread_name of row %d of rank %d before this event",
                     r->where, row, rank->rank);
}

static zero_status take_span(zero_trace_reader *r, const json_t *event)
{
    zero_traced_rank *rank;
    zero_traced_span span = {.group = -1};
    const char *category;
    int64_t length;
    int row;
    ZERO_TRY(ONLY(r, event, "name", "cat", "ph", "pid", "tid", "ts", "dur", "args"));
    ZERO_TRY(zero_json_text(r->where, event, "cat", &category));
    ZERO_TRY(zero_trace_find_rank(r, event, &rank, &row));
    ZERO_TRY(zero_trace_time(r, event, "ts", MICRO, &span.begin));
    ZERO_TRY(zero_trace_time(r, event, "dur", MICRO, &length));
    span.end = span.begin + length;
    if (strcmp(category, "wait") == 0) return take_wait(r, rank, row, &span);
    if (strcmp(category, "collective") == 0) return take_flight(r, event, row, rank, &span);
    ZERO_TRY(read_span(r, event, category, &span));
    if (row > 0) return take_row(r, row, rank, &span);
    return add_span(r, &span, &rank->spans, &rank->n_spans, &rank->span_room);
}

/* ---- memory ---- */

static zero_status read_classes(const zero_trace_reader *r, const json_t *args,
                                int64_t of_class[ZERO_CLASSES])
{
    const char *names[ZERO_CLASSES];
    for (int c = 0; c < ZERO_CLASSES; c++) {
        int64_t bytes;
        names[c] = zero_class_name((zero_class)c);
        ZERO_TRY(read_if(r, args, names[c], MOST_BYTES, &bytes));
        of_class[c] = bytes < 0 ? 0 : bytes;
    }
    return zero_json_only(r->where, args, ZERO_CLASSES, names);
}

static zero_status take_memory(zero_trace_reader *r, const json_t *event)
{
    zero_traced_rank *rank;
    zero_traced_sample sample = {.line = r->line};
    const json_t *args;
    int row;
    ZERO_TRY(ONLY(r, event, "name", "ph", "pid", "tid", "ts", "args"));
    ZERO_TRY(zero_trace_find_rank(r, event, &rank, &row));
    ZERO_TRY(zero_trace_time(r, event, "ts", MICRO, &sample.at));
    ZERO_TRY(zero_json_object(r->where, event, "args", &args));
    ZERO_TRY(read_classes(r, args, sample.of_class));
    void *larger =
        zero_grow(rank->samples, rank->n_samples, &rank->sample_room, sizeof sample);
    if (!larger) return zero_trace_no_memory(r);
    rank->samples = larger;
    rank->samples[rank->n_samples++] = sample;
    return ZERO_OK;
}

/* ---- all ---- */

zero_status zero_trace_take(zero_trace_reader *r, const json_t *event)
{
    const char *phase;
    char shown[ZERO_JSON_SHOWN];
    ZERO_TRY(zero_json_text(r->where, event, "ph", &phase));
    char kind = strlen(phase) == 1 ? *phase : '\0';
    if (!r->has_head) {
        const char *name = json_string_value(json_object_get(event, "name"));
        if (kind != 'M' || !name || strcmp(name, "zero_trace") != 0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: expected the event zero_trace, with which a trace of "
                             "this program begins",
                             r->where);
    }
    switch (kind) {
    case 'M': return zero_trace_take_name(r, event);
    case 'X': return take_span(r, event);
    case 'C': return take_memory(r, event);
    default: break;
    }
    return zero_fail(ZERO_ERR_FORMAT, "%s: \"ph\": expected M, X or C, found %s", r->where,
                     zero_json_shown(phase, shown));
}

void zero_trace_reader_destroy(zero_trace_reader *r)
{
    free(r->rank_at);
    free(r->slots);
    free(r->waits);
}
