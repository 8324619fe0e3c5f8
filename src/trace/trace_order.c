/* Events in the order of time: sorts, finds partners, checks. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
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

static int partner_by_id(const void *left, const void *right)
{
    const zero_trace_partner *a = left, *b = right;
    COMPARE(a->rank, b->rank)
    COMPARE(a->step, b->step)
    COMPARE(a->sequence, b->sequence)
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

static zero_status check_spans(const zero_trace_reader *r, const zero_traced_rank *rank,
                               const zero_traced_span *spans, int64_t n)
{
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

static zero_status order_spans(const zero_trace_reader *r, zero_traced_rank *rank)
{
    sort(rank->spans, rank->n_spans, sizeof *rank->spans, by_begin);
    ZERO_TRY(check_spans(r, rank, rank->spans, rank->n_spans));
    for (int64_t k = 0; k < rank->n_rows; k++) {
        zero_traced_row *row = &rank->rows[k];
        sort(row->spans, row->n, sizeof *row->spans, by_begin);
        ZERO_TRY(check_spans(r, rank, row->spans, row->n));
    }
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

static zero_status place_waits(const zero_trace_reader *r)
{
    for (int64_t i = 0; i < r->n_waits; i++) {
        const zero_trace_partner *wait = &r->waits[i];
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
    return ZERO_OK;
}

/* ---- flights ---- */

static int order_of(int32_t rank, const zero_traced_flight *f,
                    const zero_trace_partner *end)
{
    COMPARE(rank, end->rank)
    COMPARE(f->step, end->step)
    COMPARE(f->sequence, end->sequence)
    return 0;
}

static zero_status wrong_flight(const zero_trace_reader *r, int64_t line, const char *what)
{
    return zero_fail(ZERO_ERR_FORMAT, "%.500s, line %" PRId64 ": %s", r->trace->path, line,
                     what);
}

/* Flights of the rank and ends are sorted by id; *at: the next end. What was in flight where the
 * file was cut off is left out. */
static zero_status end_flights(const zero_trace_reader *r, int32_t index, int64_t *at)
{
    zero_traced_rank *rank = &r->trace->ranks[index];
    int64_t kept = 0;
    for (int64_t i = 0; i < rank->n_flights; i++) {
        zero_traced_flight *f = &rank->flights[i];
        bool has_end = *at < r->n_ends && order_of(index, f, &r->ends[*at]) == 0;
        if (i > 0 && f->step == f[-1].step && f->sequence == f[-1].sequence)
            return wrong_flight(r, f->line, "expected an id that no other begin has");
        if (!has_end && !r->trace->is_cut)
            return wrong_flight(r, f->line, "found no end of this collective");
        if (!has_end) continue;
        f->end = r->ends[*at].end;
        if (f->end < f->begin)
            return wrong_flight(r, r->ends[*at].line, "this end is before its begin");
        ++*at;
        rank->flights[kept++] = *f;
    }
    rank->n_flights = kept;
    if (*at < r->n_ends && r->ends[*at].rank == index)
        return wrong_flight(r, r->ends[*at].line, "found no begin of this collective");
    return ZERO_OK;
}

static zero_status order_flights(zero_trace_reader *r)
{
    int64_t at = 0;
    sort(r->ends, r->n_ends, sizeof *r->ends, partner_by_id);
    for (int64_t k = 0; k < r->trace->n_ranks; k++) {
        zero_traced_rank *rank = &r->trace->ranks[k];
        sort(rank->flights, rank->n_flights, sizeof *rank->flights, flight_by_id);
        ZERO_TRY(end_flights(r, (int32_t)k, &at));
        sort(rank->flights, rank->n_flights, sizeof *rank->flights, flight_by_begin);
    }
    return ZERO_OK;
}

/* ---- all ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void find_end(zero_traced *t)
{
    for (int64_t k = 0; k < t->n_ranks; k++) {
        const zero_traced_rank *rank = &t->ranks[k];
        if (rank->n_spans > 0) t->end = later(t->end, rank->spans[rank->n_spans - 1].end);
        for (int64_t i = 0; i < rank->n_flights; i++)
            t->end = later(t->end, rank->flights[i].end);
    }
}

zero_status zero_trace_order(zero_trace_reader *r)
{
    zero_traced *t = r->trace;
    for (int64_t k = 0; k < t->n_ranks; k++) {
        ZERO_TRY(order_spans(r, &t->ranks[k]));
        sort(t->ranks[k].samples, t->ranks[k].n_samples, sizeof *t->ranks[k].samples,
             sample_by_time);
    }
    ZERO_TRY(place_waits(r));
    ZERO_TRY(order_flights(r));
    sort(t->ranks, t->n_ranks, sizeof *t->ranks, rank_by_number);
    find_end(t);
    return ZERO_OK;
}
