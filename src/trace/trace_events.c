#include "trace/trace_events.h"

#include <limits.h>

#include "io/json_input.h"
#include "trace/trace_file.h"

#define MOST_STEPS   INT64_C(1000000000000)
#define MOST_SECONDS 1e9
#define MOST_BYTES   (INT64_C(1) << 56)

static zero_status no_memory(const zero_trace_reader *r)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its events", r->trace->path);
}

/* Adds an item to a list with room for *room. */
static zero_status append(const zero_trace_reader *r, void *list, int64_t *n, int64_t *room,
                          const void *item, size_t bytes)
{
    if (!zero_grow_at(list, *n, room, bytes)) return no_memory(r);
    memcpy(*(char **)list + (size_t)(*n)++ * bytes, item, bytes);
    return ZERO_OK;
}

/* ---- members of an object ---- */

typedef enum {
    SKIPPED,
    TEXT,
    KEPT_TEXT,
    INT,
    WHOLE,
    MICROSECONDS,
    SECONDS,
    FLAG
} member_kind;

/* A member and where it goes. KEPT_TEXT: the trace owns it. SKIPPED: read elsewhere. */
typedef struct {
    const char *key;
    member_kind kind;
    void *to;
    int64_t least, most; /* of INT and WHOLE */
    bool may_miss;       /* then `to` is left as it is */
} member;

#define MOST_MEMBERS 16

/* Texts are kept once each, as the keys of an object. */
static zero_status keep_text(const zero_trace_reader *r, const char *text,
                             const char **kept)
{
    zero_traced *t = r->trace;
    if (!t->texts) t->texts = json_object();
    if (!json_object_get(t->texts, text) &&
        json_object_set_new(t->texts, text, json_true()) != 0)
        return no_memory(r);
    *kept = json_object_iter_key(json_object_iter_at(t->texts, text));
    return ZERO_OK;
}

/* Takes these members; the object has no others. */
static zero_status take(const zero_trace_reader *r, const json_t *object, int n,
                        const member *members)
{
    const char *keys[MOST_MEMBERS], *text;
    int64_t whole;
    double time, unit;
    for (int k = 0; k < n; k++) keys[k] = members[k].key;
    ZERO_TRY(zero_json_only(r->where, object, n, keys));
    for (const member *m = members; m < members + n; m++) {
        if (m->may_miss && !json_object_get(object, m->key)) continue;
        switch (m->kind) {
        case SKIPPED: break;
        case TEXT:
        case KEPT_TEXT:
            ZERO_TRY(zero_json_text(r->where, object, m->key, &text));
            if (m->kind == KEPT_TEXT) ZERO_TRY(keep_text(r, text, &text));
            *(const char **)m->to = text;
            break;
        case INT:
        case WHOLE:
            ZERO_TRY(zero_json_whole(r->where, object, m->key, m->least, m->most, &whole));
            if (m->kind == INT)
                *(int *)m->to = (int)whole;
            else
                *(int64_t *)m->to = whole;
            break;
        case MICROSECONDS:
        case SECONDS:
            unit = m->kind == SECONDS ? 1e9 : 1e3;
            ZERO_TRY(zero_json_real(r->where, object, m->key, &time));
            ZERO_FORMAT_IF(!(time >= 0.0 && time * unit <= 1e9 * MOST_SECONDS),
                           "%s: \"%s\": expected a time from 0 to %g s, found %g", r->where,
                           m->key, MOST_SECONDS, time * unit * 1e-9);
            *(int64_t *)m->to = llround(time * unit);
            break;
        case FLAG: ZERO_TRY(zero_json_flag(r->where, object, m->key, m->to)); break;
        }
    }
    return ZERO_OK;
}

#define TAKE(r, object, ...) \
    take((r), (object), (int)(sizeof((const member[]){__VA_ARGS__}) / sizeof(member)), \
         (const member[]){__VA_ARGS__})
/* clang-format off */
#define SKIP(name)                {.key = (name)}
#define VALUE(name, type, target) {.key = (name), .kind = (type), .to = (target)}
#define NUMBER(name, type, target, from, until) \
    {.key = (name), .kind = (type), .to = (target), .least = (from), .most = (until)}
#define IF_THERE(name, type, target, until) \
    {.key = (name), .kind = (type), .to = (target), .most = (until), .may_miss = true}
/* clang-format on */

/* ---- names ---- */

/* The place of an event: a rank or, with *row > 0, a row below one (trace_file.h). */
static zero_status read_place(const zero_trace_reader *r, const json_t *event, int *rank,
                              int *row, int *node)
{
    int64_t thread, number;
    ZERO_TRY(zero_json_whole(r->where, event, "tid", 0,
                             ZERO_TRACED_RANKS * ZERO_TRACE_THREADS - 1, &thread));
    *rank = (int)(thread / ZERO_TRACE_THREADS);
    *row = (int)(thread % ZERO_TRACE_THREADS);
    ZERO_FORMAT_IF(*rank >= r->trace->world,
                   "%s: \"tid\": expected one of the ranks 0 to %d, found %d", r->where,
                   r->trace->world - 1, *rank);
    ZERO_TRY(zero_json_whole(r->where, event, "pid", 0, r->trace->nodes - 1, &number));
    *node = (int)number;
    return ZERO_OK;
}

/* The rank of an event, which has its name and is on the event's node. */
static zero_status find_rank(const zero_trace_reader *r, const json_t *event,
                             zero_traced_rank **rank, int *row)
{
    int number, node = 0;
    ZERO_TRY(read_place(r, event, &number, row, &node));
    ZERO_FORMAT_IF(!r->rank_at[number],
                   "%s: expected the thread_name of rank %d before this event", r->where,
                   number);
    *rank = &r->trace->ranks[r->rank_at[number] - 1];
    ZERO_FORMAT_IF((*rank)->node != node,
                   "%s: \"pid\": expected node %d, where rank %d is, found %d", r->where,
                   (*rank)->node, number, node);
    return ZERO_OK;
}

static zero_traced_row *find_row(const zero_traced_rank *rank, int number)
{
    for (int64_t k = 0; k < rank->n_rows; k++)
        if (rank->rows[k].number == number) return &rank->rows[k];
    return NULL;
}

static zero_status take_thread(zero_trace_reader *r, const json_t *event,
                               const json_t *args)
{
    zero_traced *t = r->trace;
    int number, node = 0;
    zero_traced_rank *rank;
    zero_traced_row row = {0};
    ZERO_TRY(TAKE(r, args, VALUE("name", TEXT, &row.name)));
    ZERO_TRY(read_place(r, event, &number, &row.number, &node));
    ZERO_FORMAT_IF(!t->hosts[node],
                   "%s: expected the process_name of node %d before its ranks", r->where,
                   node);
    if (row.number == 0) {
        zero_traced_rank made = {.rank = number, .node = node};
        ZERO_FORMAT_IF(r->rank_at[number], "%s: rank %d gets a second name", r->where,
                       number);
        ZERO_TRY(append(r, &t->ranks, &t->n_ranks, &t->rank_room, &made, sizeof made));
        r->rank_at[number] = (int32_t)t->n_ranks;
        return ZERO_OK;
    }
    ZERO_TRY(find_rank(r, event, &rank, &row.number));
    if (row.number < ZERO_TRACE_QUEUES) return ZERO_OK; /* of flights */
    ZERO_FORMAT_IF(find_row(rank, row.number), "%s: row %d of rank %d gets a second name",
                   r->where, row.number, rank->rank);
    ZERO_TRY(keep_text(r, row.name, &row.name));
    return append(r, &rank->rows, &rank->n_rows, &rank->row_room, &row, sizeof row);
}

static zero_status take_name(zero_trace_reader *r, const json_t *event)
{
    const char *name;
    const json_t *args;
    int64_t node;
    ZERO_TRY(TAKE(r, event, VALUE("name", TEXT, &name), SKIP("ph"), SKIP("pid"),
                  SKIP("tid"), SKIP("args")));
    ZERO_TRY(zero_json_object(r->where, event, "args", &args));
    if (zero_same_text(name, "zero_trace")) {
        zero_traced *t = r->trace;
        int64_t format;
        ZERO_FORMAT_IF(r->has_head, "%s: \"zero_trace\" is there twice", r->where);
        ZERO_TRY(
            TAKE(r, args,
                 NUMBER("format", WHOLE, &format, ZERO_TRACE_VERSION, ZERO_TRACE_VERSION),
                 VALUE("command", KEPT_TEXT, &t->command),
                 VALUE("version", KEPT_TEXT, &t->version),
                 VALUE("commit", KEPT_TEXT, &t->commit),
                 IF_THERE("run", WHOLE, &t->run, INT64_MAX),
                 IF_THERE("note", KEPT_TEXT, &t->note, 0),
                 NUMBER("ranks", INT, &t->world, 1, ZERO_TRACED_RANKS),
                 NUMBER("nodes", INT, &t->nodes, 1, ZERO_TRACED_RANKS),
                 VALUE("simulated", FLAG, &t->is_simulated),
                 NUMBER("first_step", WHOLE, &t->first_step, 1, MOST_STEPS),
                 NUMBER("last_step", WHOLE, &t->last_step, 1, MOST_STEPS),
                 VALUE("clock_uncertainty", SECONDS, &t->clock_uncertainty)));
        int64_t whole;
        ZERO_TRY(zero_json_whole(r->where, args, "nodes", 1, t->world, &whole));
        ZERO_TRY(zero_json_whole(r->where, args, "last_step", t->first_step, MOST_STEPS,
                                 &whole));
        t->hosts = calloc((size_t)t->nodes, sizeof *t->hosts);
        r->rank_at = calloc((size_t)t->world, sizeof *r->rank_at);
        if (!t->hosts || !r->rank_at) return no_memory(r);
        r->has_head = true;
        return ZERO_OK;
    }
    if (zero_same_text(name, "thread_name")) return take_thread(r, event, args);
    if (zero_same_text(name, "process_name")) {
        ZERO_TRY(zero_json_whole(r->where, event, "pid", 0, r->trace->nodes - 1, &node));
        ZERO_FORMAT_IF(r->trace->hosts[node], "%s: node %" PRId64 " gets a second name",
                       r->where, node);
        return TAKE(r, args, VALUE("name", KEPT_TEXT, &r->trace->hosts[node]));
    }
    if (zero_same_text(name, "process_sort_index") ||
        zero_same_text(name, "thread_sort_index"))
        return zero_json_whole(r->where, args, "sort_index", 0, INT_MAX, &node);
    char shown[ZERO_JSON_SHOWN];
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"name\": expected zero_trace, process_name, thread_name or a "
                     "sort_index, found %s",
                     r->where, zero_json_shown(name, shown));
}

/* ---- spans ---- */

static zero_status read_kind(const zero_trace_reader *r, const char *category,
                             zero_traced_kind *kind)
{
    static const char *const names[ZERO_TRACED_KINDS] = {[ZERO_TRACED_COMPUTE] = "compute",
                                                         [ZERO_TRACED_COMMUNICATION] =
                                                             "communication",
                                                         [ZERO_TRACED_DISK] = "disk",
                                                         [ZERO_TRACED_OTHER] = "other"};
    char shown[ZERO_JSON_SHOWN];
    for (int k = 0; k < ZERO_TRACED_KINDS; k++)
        if (zero_same_text(category, names[k])) {
            *kind = (zero_traced_kind)k;
            return ZERO_OK;
        }
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"cat\": expected compute, communication, disk, other, wait or "
                     "collective, found %s",
                     r->where, zero_json_shown(category, shown));
}

static zero_status take_span(zero_trace_reader *r, const json_t *event)
{
    zero_traced_rank *rank;
    zero_traced_span span = {.group = -1, .bytes = -1, .line = r->line};
    const char *category;
    const json_t *args;
    int64_t length;
    int row;
    ZERO_TRY(TAKE(r, event, VALUE("name", KEPT_TEXT, &span.name),
                  VALUE("cat", TEXT, &category), SKIP("ph"), SKIP("pid"), SKIP("tid"),
                  VALUE("ts", MICROSECONDS, &span.begin),
                  VALUE("dur", MICROSECONDS, &length), SKIP("args")));
    ZERO_TRY(find_rank(r, event, &rank, &row));
    span.end = span.begin + length;
    if (zero_same_text(category, "wait")) {
        zero_trace_wait wait = {.rank = (int32_t)(rank - r->trace->ranks),
                                .begin = span.begin,
                                .end = span.end,
                                .line = r->line};
        if (row == 0)
            return append(r, &r->waits, &r->n_waits, &r->wait_room, &wait, sizeof wait);
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected a wait on a rank, found one on a row", r->where);
    }
    ZERO_TRY(zero_json_object(r->where, event, "args", &args));
    const zero_traced *t = r->trace;
    const bool is_flight = zero_same_text(category, "collective");
    ZERO_FORMAT_IF(
        is_flight && (row == 0 || row >= ZERO_TRACE_QUEUES),
        "%s: expected a collective on a row of them, from 1 to %d, found it on row %d",
        r->where, ZERO_TRACE_QUEUES - 1, row);
    if (is_flight) {
        ZERO_TRY(TAKE(r, args, NUMBER("step", WHOLE, &span.step, 0, t->last_step),
                      NUMBER("sequence", WHOLE, &span.sequence, 0, MOST_BYTES),
                      NUMBER("first", INT, &span.first, 0, t->world - 1),
                      NUMBER("sent", WHOLE, &span.bytes, 0, MOST_BYTES)));
    } else {
        ZERO_TRY(read_kind(r, category, &span.kind));
        ZERO_TRY(TAKE(r, args,
                      NUMBER("step", WHOLE, &span.step, t->first_step, t->last_step),
                      NUMBER("at", INT, &span.at, 0, INT_MAX),
                      IF_THERE("group", INT, &span.group, INT_MAX),
                      IF_THERE("bytes", WHOLE, &span.bytes, MOST_BYTES),
                      NUMBER("live", WHOLE, &span.live, 0, MOST_BYTES)));
        ZERO_FORMAT_IF(
            row > 0 && !find_row(rank, row),
            "%s: expected the thread_name of row %d of rank %d before this event", r->where,
            row, rank->rank);
    }
    span.row = row;
    return append(r, &rank->spans, &rank->n_spans, &rank->room, &span, sizeof span);
}

/* ---- all ---- */

zero_status zero_trace_take(zero_trace_reader *r, const json_t *event)
{
    const char *phase;
    char shown[ZERO_JSON_SHOWN];
    ZERO_TRY(zero_json_text(r->where, event, "ph", &phase));
    char kind = strlen(phase) == 1 ? *phase : '\0';
    if (!r->has_head) {
        const char *name = zero_get_string(event, "name");
        ZERO_FORMAT_IF(kind != 'M' || !name || !zero_same_text(name, "zero_trace"),
                       "%s: expected the event zero_trace, with which a trace of "
                       "this program begins",
                       r->where);
    }
    switch (kind) {
    case 'M': return take_name(r, event);
    case 'X': return take_span(r, event);
    case 'C': {
        zero_traced_rank *rank;
        zero_traced_sample sample = {.line = r->line};
        const json_t *args;
        int row;
        member classes[ZERO_CLASSES];
        ZERO_TRY(TAKE(r, event, SKIP("name"), SKIP("ph"), SKIP("pid"), SKIP("tid"),
                      VALUE("ts", MICROSECONDS, &sample.at), SKIP("args")));
        ZERO_TRY(find_rank(r, event, &rank, &row));
        ZERO_TRY(zero_json_object(r->where, event, "args", &args));
        for (int c = 0; c < ZERO_CLASSES; c++)
            classes[c] = (member)IF_THERE(zero_class_name((zero_class)c), WHOLE,
                                          &sample.of_class[c], MOST_BYTES);
        ZERO_TRY(take(r, args, ZERO_CLASSES, classes));
        return append(r, &rank->samples, &rank->n_samples, &rank->sample_room, &sample,
                      sizeof sample);
    }
    default: break;
    }
    return zero_fail(ZERO_ERR_FORMAT, "%s: \"ph\": expected M, X or C, found %s", r->where,
                     zero_json_shown(phase, shown));
}
