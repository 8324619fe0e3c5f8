#include "pages/breakdown.h"

#include "base/legible.h"
#include "pages/forms.h"
#include "train/metrics.h"

#define MOST_LATEST 8

static double seconds(int64_t nanoseconds)
{
    return 1e-9 * (double)nanoseconds;
}

/* ---- steps ---- */

/* Nanoseconds of instructions; `total` has those between them, too. */
typedef struct {
    int64_t step, total, of_kind[ZERO_TRACED_KINDS];
} spent;

static json_t *spent_facts(int rank, const spent *s)
{
    const int64_t *kind = s->of_kind;
    int64_t idle = s->total;
    for (int k = 0; k < ZERO_TRACED_KINDS; k++) idle -= kind[k];
    return json_pack("{s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "rank", rank, "step",
                     s->step, "step_seconds", seconds(s->total), "compute_seconds",
                     seconds(kind[ZERO_TRACED_COMPUTE]), "communication_seconds",
                     seconds(kind[ZERO_TRACED_COMMUNICATION]), "disk_seconds",
                     seconds(kind[ZERO_TRACED_DISK]), "other_seconds",
                     seconds(kind[ZERO_TRACED_OTHER]), "idle_seconds", seconds(idle));
}

static zero_status add_steps(const zero_traced *t, json_t *tree)
{
    json_t *steps = json_array(), *sums = json_array();
    ZERO_FREED int64_t *next = NULL; /* spans */
    ZERO_FREED spent *all = NULL;
    zero_put_members(tree, "{s:o, s:o}", "steps", steps, "sums", sums);
    ZERO_TRY(zero_new(&next, t->n_ranks, "steps of ranks"));
    ZERO_TRY(zero_new(&all, t->n_ranks, "steps of ranks"));
    for (int64_t step = 0; step < INT64_MAX;) {
        int64_t later = INT64_MAX;
        for (int64_t r = 0; r < t->n_ranks; r++) {
            const zero_traced_rank *rank = &t->ranks[r];
            if (next[r] < rank->n_spans && rank->spans[next[r]].step <= step) {
                /* A step's spans, of which *at becomes the end. */
                int64_t *at = &next[r];
                spent *sum = &all[r];
                const zero_traced_span *spans = rank->spans;
                spent s = {.step = spans[*at].step, .total = -spans[*at].begin};
                for (; *at < rank->n_spans && spans[*at].step == s.step; ++*at)
                    s.of_kind[spans[*at].kind] += spans[*at].end - spans[*at].begin;
                s.total += spans[*at - 1].end;
                sum->total += s.total;
                for (int k = 0; k < ZERO_TRACED_KINDS; k++) sum->of_kind[k] += s.of_kind[k];
                json_array_append_new(steps, spent_facts(rank->rank, &s));
            }
            if (next[r] < rank->n_spans) later = zero_min(later, rank->spans[next[r]].step);
        }
        step = later;
    }
    for (int64_t r = 0; r < t->n_ranks; r++)
        json_array_append_new(sums, spent_facts(t->ranks[r].rank, &all[r]));
    return ZERO_OK;
}

/* ---- collectives ---- */

/* A rank's part of a collective. */
typedef struct {
    int64_t at; /* trace->ranks[at] */
    const zero_traced_span *flight;
} part;

/* A rank's part in the collectives of several ranks. */
typedef struct {
    int64_t joined, last; /* that it took part in, and in which it began last */
    int64_t delay;        /* of these, added up; at most INT64_MAX */
} lateness;

/* Parts of one collective are equal. */
static int compare_collectives(const zero_traced_span *a, const zero_traced_span *b)
{
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
    return zero_order(a->first, b->first);
}

/* They lie together, in the order in which ranks began. */
static int compare_parts(const void *x, const void *y)
{
    const part *a = x, *b = y;
    int order = compare_collectives(a->flight, b->flight);
    if (order != 0) return order;
    if (a->flight->begin != b->flight->begin)
        return a->flight->begin < b->flight->begin ? -1 : 1;
    return zero_order(a->at, b->at);
}

/* The collective of these parts [n]. */
static json_t *take_collective(const zero_traced *t, const part *parts, int64_t n,
                               lateness *late)
{
    const zero_traced_span *first = parts[0].flight, *last = parts[n - 1].flight;
    lateness *latest = &late[parts[n - 1].at];
    int64_t end = first->end, delay = 0;
    for (int64_t i = 0; i < n; i++) {
        end = zero_max(end, parts[i].flight->end);
        late[parts[i].at].joined += n > 1;
    }
    if (n > 1) delay = last->begin - parts[n - 2].flight->begin;
    latest->last += delay > 0;
    latest->delay += zero_min(delay, INT64_MAX - latest->delay);
    return json_pack("{s:o, s:I, s:I, s:i, s:i, s:i, s:f, s:f, s:f}", "name",
                     zero_metrics_text(first->name), "step", first->step, "sequence",
                     first->sequence, "first_rank", first->first, "ranks", (int)n,
                     "last_rank", t->ranks[parts[n - 1].at].rank, "delay_seconds",
                     seconds(delay), "spread_seconds", seconds(last->begin - first->begin),
                     "seconds", seconds(end - first->begin));
}

static double delay_of(const json_t *list, size_t i)
{
    return zero_get_number(json_array_get(list, i), "delay_seconds");
}

zero_status zero_breakdown_of(const zero_traced *t, json_t **breakdown)
{
    json_auto_t *tree =
        json_pack("{s:o, s:s, s:b, s:b, s:i, s:i, s:f, s:I, s:I, s:o*, s:o, s:o*}", "path",
                  zero_metrics_text(t->path), "shown", ZERO_SHOWN(t->path), "simulated",
                  t->is_simulated, "cut", t->is_cut, "ranks", t->world, "nodes", t->nodes,
                  "clock_uncertainty", seconds(t->clock_uncertainty), "first_step",
                  t->first_step, "last_step", t->last_step, "command",
                  t->command ? zero_metrics_text(t->command) : NULL, "version",
                  zero_metrics_text(t->version ? t->version : "unknown"), "note",
                  t->note ? zero_metrics_text(t->note) : NULL);
    ZERO_TRY(zero_allocated(tree, "%.500s: no memory for its breakdown", t->path));
    ZERO_TRY(add_steps(t, tree));
    json_t *all = json_array(), *late = json_array(), *latest = json_array();
    int64_t n = 0, at = 0;
    for (int64_t r = 0; r < t->n_ranks; r++) n += t->ranks[r].n_flights;
    ZERO_FREED part *parts = NULL;
    ZERO_FREED lateness *of = NULL;
    zero_put_members(tree, "{s:o, s:o, s:o}", "late", late, "collectives", all, "latest",
                     latest);
    ZERO_TRY(zero_new(&parts, n, "collectives"));
    ZERO_TRY(zero_new(&of, t->n_ranks, "late ranks"));
    for (int64_t r = 0; r < t->n_ranks; r++)
        for (int64_t i = 0; i < t->ranks[r].n_flights; i++)
            parts[at++] = (part){r, &t->ranks[r].flights[i]};
    zero_sort(parts, n, compare_parts);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1;
             end < n && compare_collectives(parts[begin].flight, parts[end].flight) == 0;)
            end++;
        json_array_append_new(all, take_collective(t, &parts[begin], end - begin, of));
        const size_t i = json_array_size(all) - 1;
        size_t place = json_array_size(latest);
        while (place > 0 && delay_of(latest, place - 1) < delay_of(all, i)) place--;
        if (delay_of(all, i) > 0.0)
            json_array_insert(latest, place, json_array_get(all, i));
        json_array_remove(latest, MOST_LATEST);
    }
    for (int64_t r = 0; r < t->n_ranks; r++)
        zero_put_item(late, "{s:i, s:I, s:I, s:f}", "rank", t->ranks[r].rank, "collectives",
                      of[r].joined, "began_last", of[r].last, "delay_seconds",
                      seconds(of[r].delay));
    *breakdown = json_incref(tree);
    return ZERO_OK;
}

/* ---- forms ---- */

zero_status zero_breakdown_print(const json_t *breakdown, FILE *out)
{
    return zero_print_form("trace", "text", breakdown, zero_legible_print, out);
}

void zero_breakdown_print_csv(const json_t *breakdown, FILE *out)
{
    static const char spec[] =
        "rank; step; step_seconds; compute_seconds; communication_seconds; disk_seconds; "
        "other_seconds; idle_seconds";
    zero_csv_rows(spec, ".9f", json_object_get(breakdown, "steps"), NULL, true, out);
}

json_t *zero_breakdown_describe(const json_t *breakdown)
{
    return zero_facts_pick(
        &(zero_scope){.node = breakdown},
        "path; simulated; cut; ranks; nodes; clock_uncertainty; steps; late; collectives");
}
