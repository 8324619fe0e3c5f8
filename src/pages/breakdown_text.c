/* A breakdown as text, CSV and JSON. */
#include <inttypes.h>
#include <math.h>

#include "base/fail.h"
#include "base/legible.h"
#include "pages/breakdown.h"
#include "pages/forms.h"
#include "train/metrics.h"

#define MOST_ROWS   64 /* of ranks and steps in a text; of more the ranks' sums */
#define MOST_LATEST 8  /* collectives that are named */

static double seconds(int64_t nanoseconds)
{
    return 1e-9 * (double)nanoseconds;
}

static json_t *describe_steps(const zero_breakdown_step *steps, int64_t n)
{
    json_t *all = json_array();
    for (int64_t i = 0; i < n; i++) {
        const zero_breakdown_step *s = &steps[i];
        json_array_append_new(
            all, json_pack("{s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "rank", s->rank,
                           "step", (json_int_t)s->step, "step_seconds", seconds(s->total),
                           "compute_seconds", seconds(s->of_kind[ZERO_TRACED_COMPUTE]),
                           "communication_seconds",
                           seconds(s->of_kind[ZERO_TRACED_COMMUNICATION]), "disk_seconds",
                           seconds(s->of_kind[ZERO_TRACED_DISK]), "other_seconds",
                           seconds(s->of_kind[ZERO_TRACED_OTHER]), "idle_seconds",
                           seconds(s->idle)));
    }
    return all;
}

static json_t *describe_collective(const zero_breakdown_collective *c)
{
    return json_pack("{s:o, s:I, s:I, s:i, s:i, s:i, s:f, s:f, s:f}", "name",
                     zero_metrics_text(c->name), "step", (json_int_t)c->step, "sequence",
                     (json_int_t)c->sequence, "first_rank", c->first, "ranks", c->n_ranks,
                     "last_rank", c->last, "delay_seconds", seconds(c->delay),
                     "spread_seconds", seconds(c->spread), "seconds", seconds(c->duration));
}

static json_t *describe_late(const zero_breakdown *b)
{
    json_t *all = json_array();
    for (int64_t r = 0; r < b->trace->n_ranks; r++) {
        const zero_breakdown_late *l = &b->late[r];
        json_array_append_new(all, json_pack("{s:i, s:I, s:I, s:f}", "rank", l->rank,
                                             "collectives", (json_int_t)l->joined,
                                             "began_last", (json_int_t)l->last,
                                             "delay_seconds", seconds(l->delay)));
    }
    return all;
}

/* The collectives with the longest delays, the longest first. */
static json_t *describe_latest(const zero_breakdown *b)
{
    json_t *all = json_array();
    for (int64_t n = 0, last = -1, found; n < MOST_LATEST; n++, last = found) {
        found = -1;
        for (int64_t i = 0; i < b->n_collectives; i++) {
            int64_t delay = b->collectives[i].delay,
                    limit = last < 0 ? INT64_MAX : b->collectives[last].delay;
            bool is_left = delay < limit || (delay == limit && i > last);
            if (delay > 0 && is_left && (found < 0 || delay > b->collectives[found].delay))
                found = i;
        }
        if (found < 0) break;
        json_array_append_new(all, describe_collective(&b->collectives[found]));
    }
    return all;
}

json_t *zero_breakdown_facts(const zero_breakdown *b)
{
    const zero_traced *t = b->trace;
    bool is_short = b->n_steps <= MOST_ROWS;
    return json_pack(
        "{s:s, s:b, s:b, s:i, s:i, s:I, s:I, s:f, s:o*, s:o*, s:o*, s:b, s:o, s:o, s:o}",
        "path", ZERO_SHOWN(t->path), "simulated", t->is_simulated, "cut", t->is_cut,
        "ranks", t->world, "nodes", t->nodes, "first_step", (json_int_t)t->first_step,
        "last_step", (json_int_t)t->last_step, "uncertainty", seconds(t->clock_uncertainty),
        "command", t->command ? zero_metrics_text(t->command) : NULL, "version",
        zero_metrics_text(t->version ? t->version : "unknown"), "note",
        t->note ? zero_metrics_text(t->note) : NULL, "has_collectives",
        b->n_collectives > 0, "rows",
        is_short ? describe_steps(b->steps, b->n_steps)
                 : describe_steps(b->sums, t->n_ranks),
        "late", describe_late(b), "latest", describe_latest(b));
}

zero_status zero_breakdown_print(const zero_breakdown *breakdown, FILE *out)
{
    json_t *facts = zero_breakdown_facts(breakdown);
    zero_status st = facts
                         ? zero_print_form("trace", "text", facts, zero_legible_print, out)
                         : zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its breakdown",
                                     breakdown->trace->path);
    json_decref(facts);
    return st;
}

void zero_breakdown_print_csv(const zero_breakdown *breakdown, FILE *out)
{
    fputs("rank,step,step_seconds,compute_seconds,communication_seconds,disk_seconds,"
          "other_seconds,idle_seconds\n",
          out);
    for (int64_t i = 0; i < breakdown->n_steps; i++) {
        const zero_breakdown_step *s = &breakdown->steps[i];
        fprintf(out, "%d,%" PRId64 ",%.9f", s->rank, s->step, seconds(s->total));
        for (int k = 0; k < ZERO_TRACED_KINDS; k++)
            fprintf(out, ",%.9f", seconds(s->of_kind[k]));
        fprintf(out, ",%.9f\n", seconds(s->idle));
    }
}

json_t *zero_breakdown_describe(const zero_breakdown *breakdown)
{
    const zero_traced *t = breakdown->trace;
    json_t *collectives = json_array();
    for (int64_t i = 0; i < breakdown->n_collectives; i++)
        json_array_append_new(collectives, describe_collective(&breakdown->collectives[i]));
    return json_pack("{s:o, s:b, s:b, s:i, s:i, s:f, s:o, s:o, s:o}", "path",
                     zero_metrics_text(t->path), "simulated", t->is_simulated, "cut",
                     t->is_cut, "ranks", t->world, "nodes", t->nodes, "clock_uncertainty",
                     seconds(t->clock_uncertainty), "steps",
                     describe_steps(breakdown->steps, breakdown->n_steps), "late",
                     describe_late(breakdown), "collectives", collectives);
}
