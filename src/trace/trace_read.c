#include "trace/trace_read.h"

#include "io/bytes.h"
#include "io/json_input.h"
#include "trace/trace_events.h"
#include "trace/trace_file.h"

#define MOST_LINE 65536 /* bytes of an event */

/* ---- in the order of time ---- */

#define COMPARE(a, b) \
    if ((a) != (b)) return (a) < (b) ? -1 : 1;

static int by_row(const void *left, const void *right)
{
    const zero_traced_span *a = left, *b = right;
    COMPARE(a->row, b->row)
    COMPARE(a->begin, b->begin)
    COMPARE(a->end, b->end)
    COMPARE(a->line, b->line)
    return 0;
}

static int by_begin(const void *left, const void *right)
{
    const zero_traced_span *a = left, *b = right;
    COMPARE(a->begin, b->begin)
    COMPARE(a->line, b->line)
    return 0;
}

static int by_id(const void *left, const void *right)
{
    const zero_traced_span *a = left, *b = right;
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

/* Those of one row do not overlap. */
static zero_status check_row(const zero_trace_reader *r, const zero_traced_rank *rank,
                             const zero_traced_span *s)
{
    char row[32] = "";
    if (s->row != s[-1].row || s->begin >= s[-1].end) return ZERO_OK;
    bool is_flight = s->row > 0 && s->row < ZERO_TRACE_QUEUES;
    if (is_flight) zero_print(row, "row %d of ", s->row);
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s, line %" PRId64 ": %srank %d: expected a %s from %" PRId64
                     " ns on, where the one of line %" PRId64
                     " ends, found one from %" PRId64 " ns on",
                     r->trace->path, s->line, row, rank->rank,
                     is_flight ? "collective" : "span", s[-1].end, s[-1].line, s->begin);
}

/* Sorts, divides a rank's spans, flights and queues, finds the instructions of waits, and
 * checks that those of a row do not overlap and that no two flights of a rank are the
 * same. */
static zero_status order(zero_trace_reader *r)
{
    zero_traced *t = r->trace;
    for (int64_t k = 0; k < t->n_ranks; k++) {
        zero_traced_rank *rank = &t->ranks[k];
        const zero_traced_span *all = rank->spans, *f;
        const int64_t n = rank->n_spans;
        sort(rank->spans, n, sizeof *all, by_row);
        rank->n_spans = 0;
        for (int64_t i = 0; i < n; i++) {
            if (i > 0) ZERO_TRY(check_row(r, rank, &all[i]));
            *(all[i].row == 0                  ? &rank->n_spans
              : all[i].row < ZERO_TRACE_QUEUES ? &rank->n_flights
                                               : &rank->n_queues) += 1;
            if (all[i].row < ZERO_TRACE_QUEUES) t->end = zero_max(t->end, all[i].end);
        }
        rank->flights = n > 0 ? rank->spans + rank->n_spans : NULL;
        rank->queues = n > 0 ? rank->flights + rank->n_flights : NULL;
        sort(rank->flights, rank->n_flights, sizeof *f, by_id);
        for (int64_t i = 1; i < rank->n_flights; i++) {
            f = &rank->flights[i];
            ZERO_FORMAT_IF(f->step == f[-1].step && f->sequence == f[-1].sequence,
                           "%.500s, line %" PRId64
                           ": rank %d: expected a step and sequence that no other "
                           "collective has, found those of line %" PRId64,
                           t->path, f->line, rank->rank, f[-1].line);
        }
        sort(rank->flights, rank->n_flights, sizeof *f, by_begin);
        sort(rank->samples, rank->n_samples, sizeof *rank->samples, sample_by_time);
    }
    for (int64_t i = 0; i < r->n_waits; i++) {
        const zero_trace_wait *wait = &r->waits[i];
        const zero_traced_rank *rank = &r->trace->ranks[wait->rank];
        int64_t low = 0, high = rank->n_spans; /* of spans from the first later one on */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (rank->spans[middle].begin <= wait->begin)
                low = middle + 1;
            else
                high = middle;
        }
        zero_traced_span *span = low > 0 ? &rank->spans[low - 1] : NULL;
        ZERO_FORMAT_IF(
            !span || span->begin != wait->begin || span->end < wait->end ||
                span->waited > 0,
            "%.500s, line %" PRId64 ": rank %d: expected a wait at the beginning of an "
            "instruction and within it, found one from %" PRId64 " to %" PRId64 " ns",
            r->trace->path, wait->line, rank->rank, wait->begin, wait->end);
        span->waited = wait->end - wait->begin;
    }
    sort(t->ranks, t->n_ranks, sizeof *t->ranks, rank_by_number);
    return ZERO_OK;
}

/* ---- lines ---- */

/* Where the reader is in the text. */
typedef struct {
    zero_trace_reader r;
    const char *text;
    size_t len, at;
    bool has_comma; /* after the last event */
    bool is_closed; /* the line "]" was there */
} walk;

static zero_status expected(const walk *w, const char *what, const char *line, size_t len)
{
    char found[ZERO_JSON_SHOWN], shown[ZERO_JSON_SHOWN];
    zero_print(found, "%.*s", (int)(len < sizeof found ? len : sizeof found), line);
    return zero_fail(ZERO_ERR_FORMAT, "%s: expected %s, found %s", w->r.where, what,
                     len == 0 ? "an empty line" : zero_json_shown(found, shown));
}

/* The next line, without its end; *is_whole: it has one. False after the last one. */
static bool next_line(walk *w, const char **line, size_t *len, bool *is_whole)
{
    if (w->at >= w->len) return false;
    *line = w->text + w->at;
    const char *end = memchr(*line, '\n', w->len - w->at);
    *is_whole = end != NULL;
    *len = end ? (size_t)(end - *line) : w->len - w->at;
    w->at += *len + 1;
    w->r.line++;
    zero_print(w->r.where, "%.500s, line %" PRId64, w->r.trace->path, w->r.line);
    return true;
}

/* The last line may be half an event. */
static zero_status take_line(walk *w, const char *line, size_t len, bool is_whole)
{
    if (w->is_closed) return expected(w, "nothing after the ]", line, len);
    if (len == 1 && *line == ']') {
        w->is_closed = true;
        return w->has_comma ? expected(w, "an event after the comma", line, len) : ZERO_OK;
    }
    if (w->r.line > 2 && !w->has_comma)
        return expected(w, "] or a comma on the line before", line, len);
    ZERO_FORMAT_IF(len > MOST_LINE, "%s: expected an event of at most %d bytes, found %zu",
                   w->r.where, MOST_LINE, len);
    w->has_comma = len > 0 && line[len - 1] == ',';
    len -= w->has_comma;
    json_auto_t *event = NULL;
    zero_status st = zero_json_parse(w->r.where, line, len, &event);
    if (st == ZERO_ERR_FORMAT && !is_whole) return ZERO_OK;
    ZERO_TRY(st);
    if (!json_is_object(event)) return expected(w, "an event", line, len);
    return zero_trace_take(&w->r, event);
}

static zero_status take_lines(walk *w)
{
    const char *line;
    size_t len;
    bool is_whole;
    ZERO_FORMAT_IF(!next_line(w, &line, &len, &is_whole),
                   "%.500s: expected a trace, found an empty file", w->r.trace->path);
    if (len != 1 || *line != '[')
        return expected(w, "a line [, with which a trace of this program begins", line,
                        len);
    while (next_line(w, &line, &len, &is_whole))
        ZERO_TRY(take_line(w, line, len, is_whole));
    w->r.trace->is_cut = !w->is_closed;
    ZERO_FORMAT_IF(!w->r.has_head, "%.500s: expected events, found none", w->r.trace->path);
    return ZERO_OK;
}

zero_status zero_traced_parse(zero_traced *trace, const char *path, const void *text,
                              size_t len)
{
    ZERO_AT_END(zero_traced_destroy) zero_traced read = {.path = path};
    walk w = {.r = {.trace = &read}, .text = text, .len = len};
    zero_status st = take_lines(&w);
    if (st == ZERO_OK) st = order(&w.r);
    free(w.r.rank_at);
    free(w.r.waits);
    ZERO_TRY(st);
    ZERO_GIVE(trace, read);
    return ZERO_OK;
}

zero_status zero_traced_read(zero_traced *trace, const char *path)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_TRY(zero_bytes_read_at_most(&text, path, ZERO_TRACED_TEXT));
    return zero_traced_parse(trace, path, text.bytes, text.len);
}

void zero_traced_destroy(zero_traced *trace)
{
    for (int64_t k = 0; k < trace->n_ranks; k++) {
        zero_traced_rank *rank = &trace->ranks[k];
        zero_free(rank->rows, rank->spans, rank->samples);
    }
    free(trace->ranks);
    free(trace->hosts);
    json_decref(trace->texts);
    *trace = (zero_traced){0};
}
