/* Parts of events that several kinds share, and the names of nodes, ranks and rows. */
#include "trace/trace_events.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "io/json_input.h"
#include "trace/trace_file.h"

#define MOST_STEPS   INT64_C(1000000000000)
#define MOST_SECONDS 1e9

zero_status zero_trace_no_memory(const zero_trace_reader *r)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its events", r->trace->path);
}

/* ---- texts, each kept once ---- */

static uint64_t hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}

static int64_t *slot_of(const zero_trace_reader *r, const char *text)
{
    int64_t at = (int64_t)(hash(text) & (uint64_t)(r->n_slots - 1));
    while (r->slots[at] && strcmp(r->trace->texts[r->slots[at] - 1], text) != 0)
        at = (at + 1) & (r->n_slots - 1);
    return &r->slots[at];
}

static bool grow_slots(zero_trace_reader *r)
{
    if (2 * (r->trace->n_texts + 1) <= r->n_slots) return true;
    free(r->slots);
    r->n_slots = r->n_slots > 0 ? 2 * r->n_slots : 256;
    r->slots = calloc((size_t)r->n_slots, sizeof *r->slots);
    if (!r->slots) return false;
    for (int64_t i = 0; i < r->trace->n_texts; i++) *slot_of(r, r->trace->texts[i]) = i + 1;
    return true;
}

static zero_status keep(zero_trace_reader *r, const char *text, const char **kept)
{
    zero_traced *t = r->trace;
    if (!grow_slots(r)) return zero_trace_no_memory(r);
    int64_t *slot = slot_of(r, text);
    if (!*slot) {
        char **texts = zero_grow(t->texts, t->n_texts, &t->text_room, sizeof *texts);
        if (texts) t->texts = texts;
        char *copy = texts ? strdup(text) : NULL;
        if (!copy) return zero_trace_no_memory(r);
        texts[t->n_texts++] = copy;
        *slot = t->n_texts;
    }
    *kept = t->texts[*slot - 1];
    return ZERO_OK;
}

zero_status zero_trace_text(zero_trace_reader *r, const json_t *object, const char *key,
                            const char **kept)
{
    const char *text;
    ZERO_TRY(zero_json_text(r->where, object, key, &text));
    return keep(r, text, kept);
}

/* ---- numbers ---- */

zero_status zero_trace_int(const zero_trace_reader *r, const json_t *object,
                           const char *key, int64_t least, int64_t most, int *value)
{
    int64_t number;
    ZERO_TRY(zero_json_whole(r->where, object, key, least, most, &number));
    *value = (int)number;
    return ZERO_OK;
}

zero_status zero_trace_time(const zero_trace_reader *r, const json_t *object,
                            const char *key, double unit, int64_t *nano)
{
    double time;
    ZERO_TRY(zero_json_real(r->where, object, key, &time));
    if (!(time >= 0.0 && time * unit <= 1e9 * MOST_SECONDS))
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"%s\": expected a time from 0 to %g s, found %g", r->where,
                         key, MOST_SECONDS, time * unit * 1e-9);
    *nano = llround(time * unit);
    return ZERO_OK;
}

/* ---- names ---- */

static zero_status read_steps(zero_trace_reader *r, const json_t *args)
{
    zero_traced *t = r->trace;
    ZERO_TRY(zero_json_whole(r->where, args, "first_step", 1, MOST_STEPS, &t->first_step));
    return zero_json_whole(r->where, args, "last_step", t->first_step, MOST_STEPS,
                           &t->last_step);
}

static zero_status take_head(zero_trace_reader *r, const json_t *args)
{
    zero_traced *t = r->trace;
    int64_t format;
    if (r->has_head)
        return zero_fail(ZERO_ERR_FORMAT, "%s: \"zero_trace\" is there twice", r->where);
    ZERO_TRY(ONLY(r, args, "format", "command", "version", "commit", "run", "ranks",
                  "nodes", "simulated", "first_step", "last_step", "clock_uncertainty",
                  "note"));
    ZERO_TRY(zero_json_whole(r->where, args, "format", ZERO_TRACE_VERSION,
                             ZERO_TRACE_VERSION, &format));
    ZERO_TRY(zero_trace_text(r, args, "command", &t->command));
    ZERO_TRY(zero_trace_text(r, args, "version", &t->version));
    ZERO_TRY(zero_trace_text(r, args, "commit", &t->commit));
    if (json_object_get(args, "run"))
        ZERO_TRY(zero_json_whole(r->where, args, "run", 0, INT64_MAX, &t->run));
    if (json_object_get(args, "note")) ZERO_TRY(zero_trace_text(r, args, "note", &t->note));
    ZERO_TRY(zero_trace_int(r, args, "ranks", 1, ZERO_TRACED_RANKS, &t->world));
    ZERO_TRY(zero_trace_int(r, args, "nodes", 1, t->world, &t->nodes));
    ZERO_TRY(zero_json_flag(r->where, args, "simulated", &t->is_simulated));
    ZERO_TRY(read_steps(r, args));
    ZERO_TRY(zero_trace_time(r, args, "clock_uncertainty", 1e9, &t->clock_uncertainty));
    t->hosts = calloc((size_t)t->nodes, sizeof *t->hosts);
    r->rank_at = calloc((size_t)t->world, sizeof *r->rank_at);
    if (!t->hosts || !r->rank_at) return zero_trace_no_memory(r);
    r->has_head = true;
    return ZERO_OK;
}

static zero_status read_node(const zero_trace_reader *r, const json_t *event, int *node)
{
    return zero_trace_int(r, event, "pid", 0, r->trace->nodes - 1, node);
}

static zero_status take_process(zero_trace_reader *r, const json_t *event,
                                const json_t *args)
{
    int node;
    ZERO_TRY(ONLY(r, args, "name"));
    ZERO_TRY(read_node(r, event, &node));
    if (r->trace->hosts[node])
        return zero_fail(ZERO_ERR_FORMAT, "%s: node %d gets a second name", r->where, node);
    return zero_trace_text(r, args, "name", &r->trace->hosts[node]);
}

/* Thread numbers: a rank, or a row below one (trace_file.h). */
static zero_status read_thread(const zero_trace_reader *r, const json_t *event, int *rank,
                               int *row)
{
    int thread;
    ZERO_TRY(zero_trace_int(r, event, "tid", 0, ZERO_TRACED_RANKS * ZERO_TRACE_THREADS - 1,
                            &thread));
    *rank = thread / ZERO_TRACE_THREADS;
    *row = thread % ZERO_TRACE_THREADS;
    if (*rank < r->trace->world) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"tid\": expected one of the ranks 0 to %d, found %d", r->where,
                     r->trace->world - 1, *rank);
}

static zero_status add_rank(zero_trace_reader *r, int rank, int node)
{
    zero_traced *t = r->trace;
    if (r->rank_at[rank])
        return zero_fail(ZERO_ERR_FORMAT, "%s: rank %d gets a second name", r->where, rank);
    void *larger = zero_grow(t->ranks, t->n_ranks, &t->rank_room, sizeof *t->ranks);
    if (!larger) return zero_trace_no_memory(r);
    t->ranks = larger;
    t->ranks[t->n_ranks++] = (zero_traced_rank){.rank = rank, .node = node};
    r->rank_at[rank] = (int32_t)t->n_ranks;
    return ZERO_OK;
}

zero_status zero_trace_find_rank(const zero_trace_reader *r, const json_t *event,
                                 zero_traced_rank **rank, int *row)
{
    int number, node;
    ZERO_TRY(read_thread(r, event, &number, row));
    ZERO_TRY(read_node(r, event, &node));
    if (!r->rank_at[number])
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected the thread_name of rank %d before this event",
                         r->where, number);
    *rank = &r->trace->ranks[r->rank_at[number] - 1];
    if ((*rank)->node == node) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"pid\": expected node %d, where rank %d is, found %d", r->where,
                     (*rank)->node, number, node);
}

zero_traced_row *zero_trace_find_row(const zero_traced_rank *rank, int number)
{
    for (int64_t k = 0; k < rank->n_rows; k++)
        if (rank->rows[k].number == number) return &rank->rows[k];
    return NULL;
}

static zero_status add_row(zero_trace_reader *r, zero_traced_rank *rank, int number,
                           const json_t *args)
{
    zero_traced_row row = {.number = number};
    if (zero_trace_find_row(rank, number))
        return zero_fail(ZERO_ERR_FORMAT, "%s: row %d of rank %d gets a second name",
                         r->where, number, rank->rank);
    ZERO_TRY(zero_trace_text(r, args, "name", &row.name));
    void *larger = zero_grow(rank->rows, rank->n_rows, &rank->row_room, sizeof row);
    if (!larger) return zero_trace_no_memory(r);
    rank->rows = larger;
    rank->rows[rank->n_rows++] = row;
    return ZERO_OK;
}

static zero_status take_thread(zero_trace_reader *r, const json_t *event,
                               const json_t *args)
{
    int number, node, row;
    zero_traced_rank *rank;
    const char *name;
    ZERO_TRY(ONLY(r, args, "name"));
    ZERO_TRY(zero_json_text(r->where, args, "name", &name));
    ZERO_TRY(read_thread(r, event, &number, &row));
    ZERO_TRY(read_node(r, event, &node));
    if (!r->trace->hosts[node])
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected the process_name of node %d before its ranks",
                         r->where, node);
    if (row == 0) return add_rank(r, number, node);
    ZERO_TRY(zero_trace_find_rank(r, event, &rank, &row));
    if (row < ZERO_TRACE_QUEUES) return ZERO_OK; /* of flights */
    return add_row(r, rank, row, args);
}

zero_status zero_trace_take_name(zero_trace_reader *r, const json_t *event)
{
    const char *name;
    const json_t *args;
    int order;
    ZERO_TRY(ONLY(r, event, "name", "ph", "pid", "tid", "args"));
    ZERO_TRY(zero_json_text(r->where, event, "name", &name));
    ZERO_TRY(zero_json_object(r->where, event, "args", &args));
    if (strcmp(name, "zero_trace") == 0) return take_head(r, args);
    if (strcmp(name, "process_name") == 0) return take_process(r, event, args);
    if (strcmp(name, "thread_name") == 0) return take_thread(r, event, args);
    if (strcmp(name, "process_sort_index") == 0 || strcmp(name, "thread_sort_index") == 0)
        return zero_trace_int(r, args, "sort_index", 0, INT_MAX, &order);
    char shown[ZERO_JSON_SHOWN];
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: \"name\": expected zero_trace, process_name, thread_name or a "
                     "sort_index, found %s",
                     r->where, zero_json_shown(name, shown));
}
