#include "report/ablation_show.h"

#include <math.h>

#include "report/json_put.h"
#include "report/plan_setup.h"
#include "report/text.h"

/* A line's name: the plan without the part. */
static const char *title_of(zero_ablated part)
{
    static const char *const titles[ZERO_ABLATIONS] = {
        [ZERO_ABLATE_RECOMPUTE] = "without --recompute",
        [ZERO_ABLATE_PARTITION] = "without P_a",
        [ZERO_ABLATE_STAGE] = "one stage less",
        [ZERO_ABLATE_BUCKET] = "buckets as large as groups",
        [ZERO_ABLATE_CONSTANT_BUFFERS] = "without C_B",
    };
    return titles[part];
}

static void show_bytes(const char *name, size_t bytes, FILE *out)
{
    char text[ZERO_PLAN_TEXT];
    zero_text_bytes((double)bytes, text);
    fprintf(out, "  %-27s %11s %16zu", name, text, bytes);
}

static double difference(const zero_ablation *a, const zero_ablation_line *line)
{
    return (double)line->needed - (double)a->needed;
}

static void show_line(const zero_ablation *a, zero_ablated part, FILE *out)
{
    const zero_ablation_line *line = &a->of[part];
    char more[ZERO_PLAN_TEXT];
    if (!line->is_used) {
        fprintf(out, "  %-27s not used here\n", title_of(part));
        return;
    }
    if (!line->is_possible) {
        fprintf(out, "  %-27s not possible: %s\n", title_of(part), line->why_not);
        return;
    }
    double by = difference(a, line);
    zero_text_bytes(fabs(by), more);
    show_bytes(title_of(part), line->needed, out);
    fprintf(out, " %c%10s  %s\n", by < 0 ? '-' : '+', more, line->instead);
}

static void show_layout(const zero_ablation *a, bool has_windows, FILE *out)
{
    char alive[ZERO_PLAN_TEXT], arena[ZERO_PLAN_TEXT], gaps[ZERO_PLAN_TEXT];
    double lost = (double)a->arena - (double)a->alive;
    zero_text_bytes((double)a->alive, alive);
    zero_text_bytes((double)a->arena, arena);
    zero_text_bytes(lost, gaps);
    zero_text_row("M_D", out);
    fprintf(out, "%s are laid out for %s alive at once: gaps of %s (%.2f %%)", arena, alive,
            gaps, 100.0 * lost / (double)a->alive);
    zero_text_continue(out);
    if (has_windows)
        fprintf(
            out,
            "memory of the node peaks at a time of its own, which counts as a gap\n%15s",
            "");
    fputs("the layout is M_D; build/bench_memory has a caching allocator in its "
          "place\n",
          out);
}

void zero_plan_show_ablation(const zero_plan_report *r, FILE *out)
{
    const zero_plan_stage *stage = &r->stages[0];
    const zero_ablation *a = &stage->ablation;
    fprintf(out, "%-14s %d\n", "stage", zero_plan_stage_number(stage));
    zero_plan_show_setup(r, out);
    fprintf(out, "\n%-29s %11s %16s %11s\n",
            stage->schedule.input.device ? "needed of the device" : "needed per rank", "",
            "bytes", "more");
    show_bytes("as given", a->needed, out);
    fputc('\n', out);
    for (int p = 0; p < ZERO_ABLATIONS; p++) show_line(a, (zero_ablated)p, out);
    show_layout(a, a->arena > stage->schedule.own_bytes, out);
    fputs("\neach line is a plan of its own, but that of C_B: the plan as given and the "
          "paper's buffer\n",
          out);
}

/* ---- as JSON ---- */

static json_t *line_json(const zero_ablation *a, zero_ablated part)
{
    const zero_ablation_line *line = &a->of[part];
    json_t *object = json_object();
    put_text(object, "part", zero_ablation_name(part));
    json_object_set_new(object, "used", json_boolean(line->is_used));
    if (!line->is_used) return object;
    if (!line->is_possible) {
        put_text(object, "not_possible", line->why_not);
        return object;
    }
    put_text(object, "instead", line->instead);
    put_whole(object, "needed", (int64_t)line->needed);
    put_whole(object, "more", (int64_t)difference(a, line));
    json_object_set_new(object, "by_formula", json_boolean(line->by_formula));
    return object;
}

json_t *zero_plan_ablation_json(const zero_ablation *a)
{
    json_t *object = json_object(), *without = json_array();
    put_whole(object, "needed", (int64_t)a->needed);
    put_whole(object, "laid_out", (int64_t)a->arena);
    put_whole(object, "alive", (int64_t)a->alive);
    for (int p = 0; p < ZERO_ABLATIONS; p++)
        json_array_append_new(without, line_json(a, (zero_ablated)p));
    json_object_set_new(object, "without", without);
    return object;
}
