/* A breakdown as text, CSV and JSON. */
#include <inttypes.h>
#include <math.h>

#include "base/legible.h"
#include "pages/breakdown.h"
#include "pages/cell.h"
#include "report/json_put.h"
#include "report/text.h"
#include "train/metrics.h"

#define MOST_ROWS   64 /* of ranks and steps; of more the ranks' sums */
#define MOST_LATEST 8  /* collectives that are named */

static const char *const kinds[ZERO_TRACED_KINDS] = {"compute", "communication", "disk",
                                                     "other"};

static double seconds(int64_t nanoseconds)
{
    return 1e-9 * (double)nanoseconds;
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

/* ---- text: steps ---- */

static void print_step(const zero_breakdown_step *s, const char *step, FILE *out)
{
    char total[ZERO_CELL], text[ZERO_CELL];
    zero_cell_seconds(seconds(s->total), total);
    fprintf(out, "  %6d%8s%12s", s->rank, step, total);
    for (int k = 0; k < ZERO_TRACED_KINDS; k++) {
        zero_cell_share(share(s->of_kind[k], s->total), text);
        fprintf(out, "%*s", k == ZERO_TRACED_COMMUNICATION ? 15 : 9, text);
    }
    zero_cell_share(share(s->idle, s->total), text);
    fprintf(out, "%9s\n", text);
}

static void print_each(const zero_breakdown *b, FILE *out)
{
    for (int64_t i = 0; i < b->n_steps; i++) {
        char step[24];
        snprintf(step, sizeof step, "%" PRId64, b->steps[i].step);
        print_step(&b->steps[i], step, out);
    }
}

static void print_sums(const zero_breakdown *b, FILE *out)
{
    for (int64_t r = 0; r < b->trace->n_ranks; r++) print_step(&b->sums[r], "all", out);
}

static void print_steps(const zero_breakdown *b, FILE *out)
{
    fprintf(out, "\n  %6s%8s%12s%9s%15s%9s%9s%9s\n", "rank", "step", "time", kinds[0],
            kinds[1], kinds[2], kinds[3], "idle");
    if (b->n_steps <= MOST_ROWS)
        print_each(b, out);
    else
        print_sums(b, out);
}

/* ---- text: who is late ---- */

static void print_late(const zero_breakdown *b, FILE *out)
{
    fprintf(out, "\n  %6s%14s%14s%14s\n", "rank", "collectives", "began last", "delay");
    for (int64_t r = 0; r < b->trace->n_ranks; r++) {
        const zero_breakdown_late *l = &b->late[r];
        char delay[ZERO_CELL];
        zero_cell_seconds(seconds(l->delay), delay);
        fprintf(out, "  %6d%14" PRId64 "%14" PRId64 "%14s\n", l->rank, l->joined, l->last,
                delay);
    }
}

/* The collective with the longest delay that is shorter than `limit`, or equal and later in the
 * list than `after`; -1: no delay is left. */
static int64_t next_latest(const zero_breakdown *b, int64_t limit, int64_t after)
{
    int64_t found = -1;
    for (int64_t i = 0; i < b->n_collectives; i++) {
        int64_t delay = b->collectives[i].delay;
        bool is_left = delay < limit || (delay == limit && i > after);
        if (delay > 0 && is_left && (found < 0 || delay > b->collectives[found].delay))
            found = i;
    }
    return found;
}

static void print_latest(const zero_breakdown *b, FILE *out)
{
    int64_t i = next_latest(b, INT64_MAX, -1);
    if (i < 0) return;
    fprintf(out, "\n  the longest delays%29s%8s%11s%11s\n", "step", "last", "delay",
            "in flight");
    for (int n = 0; n < MOST_LATEST && i >= 0; n++) {
        const zero_breakdown_collective *c = &b->collectives[i];
        char delay[ZERO_CELL], duration[ZERO_CELL], name[ZERO_SHOWN_BYTES];
        zero_cell_seconds(seconds(c->delay), delay);
        zero_cell_seconds(seconds(c->duration), duration);
        fprintf(out, "  %-40.40s%7" PRId64 "%8d%11s%11s\n", zero_shown(c->name, name),
                c->step, c->last, delay, duration);
        i = next_latest(b, c->delay, i);
    }
}

/* ---- text ---- */

static void print_head(const zero_traced *t, FILE *out)
{
    char uncertainty[ZERO_CELL];
    zero_cell_seconds(seconds(t->clock_uncertainty), uncertainty);
    fprintf(out, "%s\n  %s%" PRId64 " of %d ranks on %d node%s, ", ZERO_SHOWN(t->path),
            t->is_simulated ? "simulated: " : "", t->n_ranks, t->world, t->nodes,
            zero_text_plural(t->nodes));
    if (t->first_step == t->last_step)
        fprintf(out, "step %" PRId64 "\n", t->first_step);
    else
        fprintf(out, "steps %" PRId64 " to %" PRId64 "\n", t->first_step, t->last_step);
    if (t->clock_uncertainty > 0)
        fprintf(out, "  clocks of nodes agree to within %s\n", uncertainty);
    if (t->note) fprintf(out, "  note: %s\n", ZERO_SHOWN(t->note));
    if (t->is_cut)
        fprintf(out, "  note: the end of the file is missing; it is shown up to there\n");
}

void zero_breakdown_print(const zero_breakdown *breakdown, FILE *out)
{
    print_head(breakdown->trace, out);
    print_steps(breakdown, out);
    fprintf(out, "  compute: FORWARD, RECOMPUTE, BACKWARD, with the polls in them; "
                 "communication:\n  beginning collectives, waiting for them, and "
                 "agreements; idle: between\n  instructions\n");
    if (breakdown->n_collectives == 0) return;
    print_late(breakdown, out);
    fprintf(out, "  delay: from the begin of the last rank but one to that of the last, "
                 "added up\n");
    print_latest(breakdown, out);
}

/* ---- CSV ---- */

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

/* ---- JSON ---- */

static json_t *describe_step(const zero_breakdown_step *s)
{
    json_t *step = json_object();
    put_whole(step, "rank", s->rank);
    put_whole(step, "step", s->step);
    put_real(step, "step_seconds", seconds(s->total));
    put_real(step, "compute_seconds", seconds(s->of_kind[ZERO_TRACED_COMPUTE]));
    put_real(step, "communication_seconds", seconds(s->of_kind[ZERO_TRACED_COMMUNICATION]));
    put_real(step, "disk_seconds", seconds(s->of_kind[ZERO_TRACED_DISK]));
    put_real(step, "other_seconds", seconds(s->of_kind[ZERO_TRACED_OTHER]));
    put_real(step, "idle_seconds", seconds(s->idle));
    return step;
}

static json_t *describe_collective(const zero_breakdown_collective *c)
{
    json_t *all = json_object();
    json_object_set_new(all, "name", zero_metrics_text(c->name));
    put_whole(all, "step", c->step);
    put_whole(all, "sequence", c->sequence);
    put_whole(all, "first_rank", c->first);
    put_whole(all, "ranks", c->n_ranks);
    put_whole(all, "last_rank", c->last);
    put_real(all, "delay_seconds", seconds(c->delay));
    put_real(all, "spread_seconds", seconds(c->spread));
    put_real(all, "seconds", seconds(c->duration));
    return all;
}

static json_t *describe_late(const zero_breakdown_late *l)
{
    json_t *late = json_object();
    put_whole(late, "rank", l->rank);
    put_whole(late, "collectives", l->joined);
    put_whole(late, "began_last", l->last);
    put_real(late, "delay_seconds", seconds(l->delay));
    return late;
}

json_t *zero_breakdown_describe(const zero_breakdown *breakdown)
{
    const zero_traced *t = breakdown->trace;
    json_t *all = json_object(), *steps = json_array(), *late = json_array();
    json_t *collectives = json_array();
    for (int64_t i = 0; i < breakdown->n_steps; i++)
        json_array_append_new(steps, describe_step(&breakdown->steps[i]));
    for (int64_t i = 0; i < breakdown->n_collectives; i++)
        json_array_append_new(collectives, describe_collective(&breakdown->collectives[i]));
    for (int64_t r = 0; r < t->n_ranks; r++)
        json_array_append_new(late, describe_late(&breakdown->late[r]));
    json_object_set_new(all, "path", zero_metrics_text(t->path));
    json_object_set_new(all, "simulated", json_boolean(t->is_simulated));
    json_object_set_new(all, "cut", json_boolean(t->is_cut));
    put_whole(all, "ranks", t->world);
    put_whole(all, "nodes", t->nodes);
    put_real(all, "clock_uncertainty", seconds(t->clock_uncertainty));
    json_object_set_new(all, "steps", steps);
    json_object_set_new(all, "late", late);
    if (json_object_set_new(all, "collectives", collectives) == 0) return all;
    json_decref(all);
    return NULL;
}
