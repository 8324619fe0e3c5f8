/* The timeline: a row for each rank, what it did in the colour of its kind, and below it, thin, its
 * collectives in flight. */
#include "pages/page_timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "pages/breakdown.h"
#include "pages/page_parts.h"
#include "pages/svg.h"

#define RANKS 64  /* rows, at most */
#define STEPS 3   /* that are drawn, at most: the last ones */
#define MARKS 800 /* boxes with titles, at most */

/* ---- measuring ---- */

static void find_window(zero_timeline *p)
{
    const zero_traced *t = p->trace;
    /* A file that was cut off has fewer steps than its head says. */
    for (int64_t r = 0; r < p->n; r++)
        if (t->ranks[r].n_spans > 0)
            p->last_step =
                zero_max(p->last_step, t->ranks[r].spans[t->ranks[r].n_spans - 1].step);
    p->first_step = zero_max(t->first_step, p->last_step - STEPS + 1);
    p->begin = INT64_MAX;
    p->end = 0;
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t i = 0; i < t->ranks[r].n_spans; i++) {
            const zero_traced_span *s = &t->ranks[r].spans[i];
            if (!zero_timeline_has(p, s->step)) continue;
            p->begin = zero_min(p->begin, s->begin);
            p->end = zero_max(p->end, s->end);
            p->spent[r][zero_kind_of(s->name)] += (double)(s->end - s->begin);
        }
}

static int64_t count_wide(const zero_timeline *p)
{
    int64_t n = 0;
    double scale = (p->x.to - p->x.from) / (double)(p->end - p->begin);
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t i = 0; i < p->trace->ranks[r].n_spans; i++) {
            const zero_traced_span *s = &p->trace->ranks[r].spans[i];
            n += zero_timeline_has(p, s->step) &&
                 (double)(s->end - s->begin) * scale >= p->least;
        }
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t i = 0; i < p->trace->ranks[r].n_flights; i++) {
            const zero_traced_flight *f = &p->trace->ranks[r].flights[i];
            n += zero_timeline_has(p, f->step) &&
                 (double)(f->end - f->begin) * scale >= p->least;
        }
    return n;
}

static void choose_sizes(zero_timeline *p)
{
    bool is_few = p->n <= 12;
    p->row = is_few ? 22.0 : p->n <= 32 ? 14.0 : 9.0;
    p->lane = is_few ? 4.0 : 2.0;
    p->pitch = p->row + ZERO_TIMELINE_LANES * (p->lane + 1.0) + (is_few ? 6.0 : 3.0);
    p->column = is_few ? 0.5 : p->n <= 32 ? 1.0 : 2.0;
    p->x = zero_axis_make(ZERO_AXIS_EXACT, 0.0, (double)(p->end - p->begin) * 1e-6, 10,
                          ZERO_TIMELINE_LEFT, ZERO_TIMELINE_RIGHT);
    for (p->least = 3.0; count_wide(p) > MARKS; p->least *= 1.5) continue;
}

/* ---- the picture ---- */

static void draw_steps(const zero_timeline *p, double bottom)
{
    const zero_traced_rank *rank = &p->trace->ranks[0];
    int64_t before = 0;
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        if (!zero_timeline_has(p, s->step) || s->step == before) continue;
        char text[32];
        double x = zero_timeline_at(p, s->begin);
        before = s->step;
        snprintf(text, sizeof text, "step %" PRId64, s->step);
        zero_svg_line(x, ZERO_TIMELINE_TOP - 18.0, x, bottom, "median", p->out);
        zero_svg_text(x + 4.0, ZERO_TIMELINE_TOP - 9.0, ZERO_SVG_LEFT, "tick", text,
                      p->out);
    }
}

static void draw(zero_timeline *p)
{
    char label[200];
    double bottom = ZERO_TIMELINE_TOP + (double)p->n * p->pitch;
    snprintf(label, sizeof label,
             "Timeline of %" PRId64 " ranks over steps %" PRId64 " to %" PRId64
             "; the table below has its sums",
             p->n, p->first_step, p->last_step);
    zero_svg_frame frame = {label, ZERO_TIMELINE_WIDTH, bottom + 42.0, true};
    zero_svg_begin(&frame, p->out);
    for (int64_t r = 0; r < p->n; r++) zero_timeline_rank(p, r);
    draw_steps(p, bottom);
    zero_svg_bottom_axis(&p->x, bottom, p->out);
    zero_svg_text(ZERO_TIMELINE_RIGHT, bottom + 36.0, ZERO_SVG_RIGHT, "tick",
                  "milliseconds", p->out);
    zero_svg_end(&frame, p->out);
}

/* ---- what is around it ---- */

/* Rows of the table: what each rank did in these steps. */
static json_t *sums_of(const zero_timeline *p)
{
    json_t *rows = json_array(), *names = json_array();
    for (int k = 0; k < ZERO_KINDS; k++)
        json_array_append_new(
            names, json_pack("{s:s}", "name", zero_kind_name((zero_page_kind)k)));
    for (int64_t r = 0; r < p->n; r++) {
        json_t *kinds = json_array();
        double all = 0.0;
        for (int k = 0; k < ZERO_KINDS; k++) {
            json_array_append_new(kinds,
                                  json_pack("{s:s, s:f, s:f}", "class",
                                            zero_kind_class((zero_page_kind)k), "seconds",
                                            1e-9 * p->spent[r][k], "before", 1e-9 * all));
            all += p->spent[r][k];
        }
        json_array_append_new(rows,
                              json_pack("{s:i, s:f, s:o}", "rank", p->trace->ranks[r].rank,
                                        "time", 1e-9 * all, "kinds", kinds));
    }
    return json_pack("{s:I, s:o, s:o}", "drawn", (json_int_t)p->n, "kinds", names, "rows",
                     rows);
}

static zero_status draw_trace(zero_timeline *p, const json_t *facts)
{
    double spent = 0.0, length;
    p->n = zero_min(p->trace->n_ranks, RANKS);
    find_window(p);
    length = (double)(p->end - p->begin);
    for (int k = 0; k < ZERO_KINDS; k++) spent += p->spent[0][k];
    json_t *head = json_copy((json_t *)facts);
    json_object_set_new(head, "drawn", json_integer(p->n));
    json_object_set_new(head, "first", json_integer(p->first_step));
    json_object_set_new(head, "last", json_integer(p->last_step));
    /* The first rank spends a twentieth of the time outside of steps. */
    json_object_set_new(head, "has_blanks",
                        json_boolean(p->n > 0 && spent > 0.0 && spent < 0.95 * length));
    ZERO_TRY(zero_page_form("trace", "page_begin", head, p->out));
    if (p->end <= p->begin) {
        zero_page_missing("The trace has no spans: it was cut off before the first one.",
                          p->out);
        return ZERO_OK;
    }
    choose_sizes(p);
    fputs("<ul class=\"legend\">", p->out);
    for (int k = 0; k < ZERO_KINDS; k++)
        zero_svg_key(zero_kind_class((zero_page_kind)k), -1,
                     zero_kind_name((zero_page_kind)k), p->out);
    zero_svg_key("flight", -1, "collective in flight", p->out);
    fputs("</ul>\n", p->out);
    draw(p);
    ZERO_TRY(zero_page_form("trace", "page_sums", sums_of(p), p->out));
    return zero_page_form("trace", "page_late", json_incref((json_t *)facts), p->out);
}

zero_status zero_page_timeline(const zero_traced *trace, FILE *out)
{
    zero_breakdown breakdown;
    zero_timeline picture = {.trace = trace, .out = out};
    ZERO_TRY(zero_breakdown_of(trace, &breakdown));
    picture.spent = calloc(RANKS, sizeof *picture.spent);
    json_t *facts = zero_breakdown_facts(&breakdown);
    zero_breakdown_destroy(&breakdown);
    zero_status st = picture.spent && facts
                         ? draw_trace(&picture, facts)
                         : zero_fail(ZERO_ERR_NOMEM, "no memory for a timeline");
    json_decref(facts);
    free(picture.spent);
    fputs("</section>\n", out);
    return st;
}
