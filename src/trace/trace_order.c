/* Events in the order of time: sorts, finds partners, checks. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "trace/trace_events.h"

#define COMPARE(a, b) \
    if ((a) != (b)) return (a) < (b) ? -1 : 1;

static int by_begin(const void *left, const void *right)
{
    const zero_traced_span *a = left, *b = right;
    COMPARE(a->begin, b->begin)
    COMPARE(a->end, b->end)
    COMPARE(a->line, b->line)
    return 0;
}

static int flight_by_begin(const void *left, const void *right)
{
    const zero_traced_flight *a = left, *b = right;
    COMPARE(a->begin, b->begin)
    COMPARE(a->line, b->line)
    return 0;
}

static int flight_by_row(const void *left, const void *right)
{
    const zero_traced_flight *a = left, *b = right;
    COMPARE(a->row, b->row)
    COMPARE(a->begin, b->begin)
    COMPARE(a->end, b->end)
    COMPARE(a->line, b->line)
    return 0;
}

static int flight_by_id(const void *left, const void *right)
{
    const zero_traced_flight *a = left, *b = right;
    COMPARE(a->step, b->step)
    COMPARE(a->sequence, b->sequence)
    COMPARE(a->line, b->line)
    return 0;
}

static int sample_by_time(const void *left, const void *right)
{
    const zero_traced_sample *a = left, *b = right;
    COMPARE(a->at, b->at)
    COMPARE(a->line, b->line)
    return 0;
}

static int rank_by_number(const void *left, const void *right)
{
    const zero_traced_rank *a = left, *b = right;
    COMPARE(a->rank, b->rank)
    return 0;
}

/* qsort() takes no NULL. */
static void sort(void *list, int64_t n, size_t item,
                 int (*compare)(const void *left, const void *right))
{
    if (n > 1) qsort(list, (size_t)n, item, compare);
}

/* ---- spans ---- */

static zero_status order_spans(const zero_trace_reader *r, const zero_traced_rank *rank,
                               zero_traced_span *spans, int64_t n)
{
    sort(spans, n, sizeof *spans, by_begin);
    for (int64_t i = 1; i < n; i++)
        if (spans[i].begin < spans[i - 1].end)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s, line %" PRId64
                             ": rank %d: expected a span from %" PRId64
                             " ns on, where the one of line %" PRId64
                             " ends, found one from %" PRId64 " ns on",
                             r->trace->path, spans[i].line, rank->rank, spans[i - 1].end,
                             spans[i - 1].line, spans[i].begin);
    return ZERO_OK;
}

/* The last span that begins at `time`, or NULL. */
static zero_traced_span *span_from(const zero_traced_rank *rank, int64_t time)
{
    int64_t low = 0, high = rank->n_spans;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (rank->spans[middle].begin <= time)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || rank->spans[low - 1].begin != time) return NULL;
    return &rank->spans[low - 1];
}

/* ---- flights ---- */

/* ---- all ---- */

zero_status zero_trace_order(zero_trace_reader *r)
{
    zero_traced *t = r->trace;
    for (int64_t k = 0; k < t->n_ranks; k++) {
        zero_traced_rank *rank = &t->ranks[k];
        ZERO_TRY(order_spans(r, rank, rank->spans, rank->n_spans));
        for (int64_t i = 0; i < rank->n_rows; i++)
            ZERO_TRY(order_spans(r, rank, rank->rows[i].spans, rank->rows[i].n));
        sort(rank->flights, rank->n_flights, sizeof *rank->flights, flight_by_row);
        for (int64_t i = 1; i < rank->n_flights; i++) {
            const zero_traced_flight *f = &rank->flights[i];
            if (f->row == f[-1].row && f->begin < f[-1].end)
                return zero_fail(ZERO_ERR_FORMAT,
                                 "%.500s, line %" PRId64
                                 ": row %d of rank %d: expected a collective from %" PRId64
                                 " ns on, where the one of line %" PRId64
                                 " ends, found one from %" PRId64 " ns on",
                                 r->trace->path, f->line, f->row, rank->rank, f[-1].end,
                                 f[-1].line, f->begin);
        }
        sort(rank->flights, rank->n_flights, sizeof *rank->flights, flight_by_id);
        for (int64_t i = 1; i < rank->n_flights; i++) {
            const zero_traced_flight *f = &rank->flights[i];
            if (f->step == f[-1].step && f->sequence == f[-1].sequence)
                return zero_fail(ZERO_ERR_FORMAT,
                                 "%.500s, line %" PRId64
                                 ": rank %d: expected a step and sequence that no other "
                                 "collective has, found those of line %" PRId64,
                                 r->trace->path, f->line, rank->rank, f[-1].line);
        }
        sort(rank->flights, rank->n_flights, sizeof *rank->flights, flight_by_begin);
        sort(rank->samples, rank->n_samples, sizeof *rank->samples, sample_by_time);
        if (rank->n_spans > 0)
            t->end = zero_max(t->end, rank->spans[rank->n_spans - 1].end);
        for (int64_t i = 0; i < rank->n_flights; i++)
            t->end = zero_max(t->end, rank->flights[i].end);
    }
    for (int64_t i = 0; i < r->n_waits; i++) {
        const zero_trace_wait *wait = &r->waits[i];
        const zero_traced_rank *rank = &r->trace->ranks[wait->rank];
        zero_traced_span *span = span_from(rank, wait->begin);
        if (!span || span->end < wait->end || span->waited > 0)
            return zero_fail(
                ZERO_ERR_FORMAT,
                "%.500s, line %" PRId64 ": rank %d: expected a wait at the beginning of an "
                "instruction and within it, found one from %" PRId64 " to %" PRId64 " ns",
                r->trace->path, wait->line, rank->rank, wait->begin, wait->end);
        span->waited = wait->end - wait->begin;
    }
    sort(t->ranks, t->n_ranks, sizeof *t->ranks, rank_by_number);
    return ZERO_OK;
}
