#include "trace/trace_file.h"

#include <stdarg.h>

#include "base/legible.h"
#include "sharding/schedule_memory.h"

#define BUFFER  65536 /* bytes that wait for the file, beside the last event */
#define ESCAPED (2 * ZERO_TRACE_NAME + 1)

/* Rows of a rank's flights, and its memory. */
struct lanes {
    int64_t *end; /* [n] when the last flight in it ended, nanoseconds; owned */
    int n;
    int64_t room;
    bool has_memory;
    size_t of_class[ZERO_CLASSES]; /* bytes that were written last */
};

struct zero_trace_file {
    zero_trace_head head;
    bool has_file; /* else the events are only text */
    zero_whole_file file;
    FILE *out; /* text */
    char *text;
    size_t bytes; /* of text, once `out` is flushed */
    zero_failure failure;
    char *rows[ZERO_TRACE_ROWS]; /* [n_rows] names, owned */
    int n_rows;
    uint32_t *named;     /* [ranks] bit k: row k of the rank has its name */
    bool *has_node;      /* [nodes]: has its name */
    struct lanes *lanes; /* [ranks] */
};

/* ---- lines ---- */

/* Moves the text into the file. */
static void flush(zero_trace_file *f)
{
    if (fflush(f->out) != 0)
        zero_trace_file_fail(f, zero_fail(ZERO_ERR_NOMEM, "no memory for a trace"));
    if (!f->has_file || f->failure.status != ZERO_OK) return;
    zero_trace_file_fail(f, zero_whole_file_write(&f->file, f->text, f->bytes));
    rewind(f->out);
}

/* A part of an event, each of which begins with the line's end before it. */
static __attribute__((format(printf, 2, 3))) void put(zero_trace_file *f,
                                                      const char *format, ...)
{
    va_list args;
    if (f->failure.status != ZERO_OK) return;
    if (f->has_file && ftell(f->out) > BUFFER) flush(f);
    va_start(args, format);
    vfprintf(f->out, format, args);
    va_end(args);
}

/* A text between quotes of JSON. */
static const char *quoted(const char *text, char escaped[ESCAPED])
{
    char legible[ZERO_TRACE_NAME + 1];
    char *to = escaped;
    zero_legible(text, strlen(text), legible, sizeof legible);
    for (const char *c = legible; *c; c++) {
        if (*c == '"' || *c == '\\') *to++ = '\\';
        *to++ = *c;
    }
    *to = '\0';
    return escaped;
}

#define QUOTED(text) quoted((text), (char[ESCAPED]){""})

/* A time in microseconds, exact to the nanosecond. */
#define TIME    "%" PRId64 ".%03" PRId64
#define NANO(t) (t) / 1000, (t) % 1000

/* Whole nanoseconds. A time that is not finite, or negative, is kept as a failure. */
static int64_t nano(zero_trace_file *f, double seconds)
{
    if (seconds >= 0.0 && seconds < 1e9) return llround(1e9 * seconds);
    zero_trace_file_fail(
        f, zero_fail(ZERO_ERR_INVALID, "a time of %g s cannot be in a trace", seconds));
    return 0;
}

/* ---- names ---- */

const char *zero_trace_category(zero_op op)
{
    return zero_ops[op].category ? zero_ops[op].category : "other";
}

void zero_trace_collective(const zero_model *model, const zero_instruction *i,
                           zero_collective_kind kind, char text[ZERO_TRACE_NAME])
{
    char operand[ZERO_PLAN_TEXT];
    zero_text_part(model, i, operand);
    snprintf(text, ZERO_TRACE_NAME, "%s %s", zero_collective_kind_name(kind), operand);
}

static void name_node(zero_trace_file *f, int node)
{
    if (f->has_node[node]) return;
    f->has_node[node] = true;
    put(f,
        ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"node "
        "%d, %s\"}}",
        node, node, f->head.hosts ? QUOTED(f->head.hosts[node]) : "simulated");
    put(f,
        ",\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_"
        "index\":%d}}",
        node, node);
}

static int thread_of(int rank, int row)
{
    return ZERO_TRACE_THREADS * rank + row;
}

/* Rows of a rank stand below it. */
static void name_thread(zero_trace_file *f, int rank, int row, const char *name)
{
    int node = f->head.layout->node_of[rank], thread = thread_of(rank, row);
    put(f,
        ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{"
        "\"name\":"
        "\"rank %d%s%s\"}}",
        node, thread, rank, *name ? " " : "", QUOTED(name));
    put(f,
        ",\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{"
        "\"sort_index\":%d}}",
        node, thread, thread);
}

void zero_trace_file_rank(zero_trace_file *f, int rank)
{
    if (f->has_file) name_node(f, f->head.layout->node_of[rank]);
    name_thread(f, rank, 0, "");
}

zero_status zero_trace_file_text(zero_trace_file *f, const char **text, size_t *bytes)
{
    flush(f);
    *text = f->text;
    *bytes = f->bytes;
    return zero_failure_restore(&f->failure);
}

zero_status zero_trace_file_append(zero_trace_file *f, int rank, const char *text,
                                   size_t bytes)
{
    name_node(f, f->head.layout->node_of[rank]);
    flush(f);
    if (f->failure.status == ZERO_OK)
        zero_trace_file_fail(f, zero_whole_file_write(&f->file, text, bytes));
    return zero_failure_restore(&f->failure);
}

/* ---- events ---- */

static void put_span(zero_trace_file *f, int thread, const zero_trace_span *s)
{
    int node = f->head.layout->node_of[s->rank];
    int64_t begin = nano(f, s->begin), end = nano(f, s->end);
    int64_t waited = nano(f, s->waited);
    put(f,
        ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":" TIME
        ",\"dur\":" TIME ",\"args\":{\"step\":%" PRId64 ",\"at\":%d",
        QUOTED(s->name), s->category, node, thread, NANO(begin), NANO(end - begin), s->step,
        s->at);
    if (s->group >= 0) put(f, ",\"group\":%d", s->group);
    if (s->bytes >= 0) put(f, ",\"bytes\":%" PRId64, s->bytes);
    put(f, ",\"live\":%zu}}", s->live_bytes);
    if (waited == 0) return;
    if (waited > end - begin) waited = end - begin;
    put(f,
        ",\n{\"name\":\"waiting\",\"cat\":\"wait\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
        "\"ts\":" TIME ",\"dur\":" TIME "}",
        node, thread, NANO(begin), NANO(waited));
}

void zero_trace_file_span(zero_trace_file *f, const zero_trace_span *span)
{
    put_span(f, thread_of(span->rank, 0), span);
}

void zero_trace_file_flight(zero_trace_file *f, const zero_trace_flight *g)
{
    int64_t begin = nano(f, g->begin), end = nano(f, g->end);
    struct lanes *l = &f->lanes[g->rank];
    /* The row in which the last flight ended last of those that ended before, or a new
     * one. */
    int lane = -1;
    for (int k = 0; k < l->n; k++)
        if (l->end[k] <= begin && (lane < 0 || l->end[k] > l->end[lane])) lane = k;
    if (lane < 0) {
        lane = l->n;
        bool has_room = lane + 1 < ZERO_TRACE_QUEUES;
        if (!has_room || !zero_grow(l->end, lane, &l->room)) {
            zero_trace_file_fail(
                f, has_room ? zero_fail(ZERO_ERR_NOMEM,
                                        "no memory for row %d of rank %d in a trace",
                                        lane + 1, g->rank)
                            : zero_fail(
                                  ZERO_ERR_INVALID,
                                  "--trace: rank %d has more than %d collectives in flight "
                                  "at once, for which a trace has no rows: trace a job of "
                                  "fewer ranks, or --partition slice",
                                  g->rank, lane));
            return;
        }
        name_thread(f, g->rank, ++l->n, "in flight");
    }
    l->end[lane] = end;
    put(f,
        ",\n{\"name\":\"%s\",\"cat\":\"collective\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,"
        "\"ts\":" TIME ",\"dur\":" TIME ",\"args\":{\"step\":%" PRId64
        ",\"sequence\":%" PRId64 ",\"first\":%d,\"sent\":%" PRId64 "}}",
        QUOTED(g->name), f->head.layout->node_of[g->rank], thread_of(g->rank, lane + 1),
        NANO(begin), NANO(end - begin), g->step, g->sequence, g->first, g->sent);
}

void zero_trace_file_memory(zero_trace_file *f, int rank, double at,
                            const size_t of_class[ZERO_CLASSES])
{
    const size_t *peak = f->head.class_peak;
    struct lanes *l = &f->lanes[rank];
    int64_t time = nano(f, at);
    if (l->has_memory && memcmp(l->of_class, of_class, sizeof l->of_class) == 0) return;
    l->has_memory = true;
    memcpy(l->of_class, of_class, sizeof l->of_class);
    const char *comma = "";
    put(f,
        ",\n{\"name\":\"memory of rank %d\",\"ph\":\"C\",\"pid\":%d,\"tid\":%d,\"ts\":" TIME
        ",\"args\":{",
        rank, f->head.layout->node_of[rank], thread_of(rank, 0), NANO(time));
    for (int c = 0; c < ZERO_CLASSES; c++) {
        if (peak && peak[c] == 0 && of_class[c] == 0) continue;
        put(f, "%s\"%s\":%zu", comma, zero_class_name((zero_class)c), of_class[c]);
        comma = ",";
    }
    put(f, "}}");
}

void zero_trace_file_queue(zero_trace_file *f, int rank, const char *row,
                           const zero_trace_span *span)
{
    int k = 0;
    while (k < f->n_rows && !zero_same_text(f->rows[k], row)) k++;
    if (k == f->n_rows) {
        char *copy = k < ZERO_TRACE_ROWS ? strdup(row) : NULL;
        if (!copy)
            zero_trace_file_fail(
                f, zero_fail(ZERO_ERR_NOMEM, "no memory for row %d of a trace", k + 1));
        if (!copy) return;
        f->rows[f->n_rows++] = copy;
    }
    if (!(f->named[rank] >> k & 1)) name_thread(f, rank, ZERO_TRACE_QUEUES + k, row);
    f->named[rank] |= 1u << k;
    put_span(f, thread_of(rank, ZERO_TRACE_QUEUES + k), span);
}

/* ---- the file ---- */

static void release(zero_trace_file *f)
{
    for (int k = 0; k < f->n_rows; k++) free(f->rows[k]);
    for (int r = 0; f->lanes && r < f->head.layout->size; r++) free(f->lanes[r].end);
    if (f->out) fclose(f->out);
    zero_free(f->text, f->lanes, f->named, f->has_node, f);
}

zero_status zero_trace_file_place(zero_whole_file *place, const char *path,
                                  zero_whole_file_wish wish, zero_lock *lock)
{
    zero_status st = zero_whole_file_begin(place, path, wish, lock);
    if (st == ZERO_OK || st == ZERO_ERR_NOMEM || *lock == ZERO_LOCK_BUSY) return st;
    return zero_fail(ZERO_ERR_INVALID, "--trace %s", zero_last_error());
}

zero_status zero_trace_file_begin(zero_trace_file **file, zero_whole_file *place,
                                  const zero_trace_head *head)
{
    zero_trace_file *f;
    ZERO_TRY(zero_new(&f, 1, "a trace"));
    const zero_trace_head *h = &f->head;
    *f = (zero_trace_file){.head = *head, .has_file = place != NULL};
    f->named = calloc((size_t)h->layout->size, sizeof *f->named);
    f->lanes = calloc((size_t)h->layout->size, sizeof *f->lanes);
    f->has_node = calloc((size_t)h->layout->n_nodes, sizeof *f->has_node);
    f->out = open_memstream(&f->text, &f->bytes);
    if (!f->named || !f->has_node || !f->lanes || !f->out) {
        release(f);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a trace");
    }
    *file = f;
    if (!place) return ZERO_OK;
    f->file = *place;
    *place = (zero_whole_file){0};
    put(f,
        "[\n{\"name\":\"zero_trace\",\"ph\":\"M\",\"pid\":0,\"args\":{\"format\":%d,"
        "\"command\":\"%s\",\"version\":\"%s\",\"commit\":\"%s\",\"run\":%" PRId64
        ",\"ranks\":%d,\"nodes\":%d,\"simulated\":%s,\"first_step\":%" PRId64
        ",\"last_step\":%" PRId64 ",\"clock_uncertainty\":%.9f",
        ZERO_TRACE_VERSION, QUOTED(h->command), QUOTED(h->version), QUOTED(h->commit),
        h->run, h->layout->size, h->layout->n_nodes, h->hosts ? "false" : "true",
        h->first_step, h->last_step, h->clock_uncertainty);
    if (h->note) put(f, ",\"note\":\"%s\"", QUOTED(h->note));
    put(f, "}}");
    return ZERO_OK;
}

zero_status zero_trace_file_end(zero_trace_file *f, zero_status st)
{
    if (st == ZERO_OK) {
        if (f->has_file) put(f, "\n]\n");
        flush(f);
        st = zero_failure_restore(&f->failure);
    }
    if (st == ZERO_OK && f->has_file) st = zero_whole_file_end(&f->file);
    zero_whole_file_abandon(&f->file);
    release(f);
    return st;
}

void zero_trace_file_fail(zero_trace_file *f, zero_status st)
{
    if (f->failure.status == ZERO_OK) f->failure = zero_failure_keep(st);
}

zero_status zero_trace_live(const zero_schedule *s, zero_program_kind kind,
                            size_t (**live)[ZERO_CLASSES])
{
    ZERO_TRY(zero_new(live, s->programs[kind].length + 1, "bytes of instructions"));
    zero_schedule_live(s, kind, *live);
    return ZERO_OK;
}

/* ---- size ---- */

/* Bytes of an event: measured with names of GPT-2's instructions and nine classes of
 * memory. */
#define SPAN   180
#define WAIT   100
#define FLIGHT 190
#define SAMPLE 300

zero_status zero_trace_file_check(const zero_trace_counts *counts, const char *remedy)
{
    int64_t bytes = SPAN * counts->spans + WAIT * counts->waits + FLIGHT * counts->flights +
                    SAMPLE * counts->samples;
    ZERO_INVALID_IF(bytes > ZERO_TRACE_MOST,
                    "--trace: the file would have about %" PRId64 " MiB, more than %" PRId64
                    ", with %" PRId64 " instructions and %" PRId64
                    " collectives of all its ranks and steps; %s",
                    bytes >> 20, ZERO_TRACE_MOST >> 20, counts->spans, counts->flights,
                    remedy);
    return ZERO_OK;
}
