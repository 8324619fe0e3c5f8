/* The timeline: a row for each rank, what it did in the colour of its kind, and below it, thin, its
 * collectives in flight. */
#include "pages/page_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "pages/cell.h"
#include "pages/page_html.h"
#include "pages/page_kind.h"
#include "pages/page_timeline.h"
#include "pages/svg.h"

#define RANKS  64  /* rows, at most */
#define STEPS  3   /* that are drawn, at most: the last ones */
#define MARKS  800 /* boxes with titles, at most */
#define LISTED 16  /* ranks of a table that is open */

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

static void write_legend(FILE *out)
{
    zero_html_legend(out);
    for (int k = 0; k < ZERO_KINDS; k++)
        zero_html_key(zero_kind_class((zero_kind)k), zero_kind_name((zero_kind)k), out);
    zero_html_key("flight", "collective in flight", out);
    zero_html_legend_end(out);
}

/* ---- sums ---- */

static void write_stack(const double spent[ZERO_KINDS], double all, FILE *out)
{
    double at = 0.0;
    fputs("<td class=\"bar\"><svg viewBox=\"0 0 150 12\" aria-hidden=\"true\">", out);
    for (int k = 0; k < ZERO_KINDS; k++) {
        double width = 150.0 * spent[k] / all;
        if (width > 0.05)
            fprintf(out,
                    "<rect class=\"%s\" x=\"%.1f\" y=\"1\" width=\"%.1f\" height=\"10\"/>",
                    zero_kind_class((zero_kind)k), at, width);
        at += width;
    }
    fputs("</svg></td>", out);
}

static void write_sums(const zero_timeline *p)
{
    const char *heads[ZERO_KINDS + 3] = {"Rank", "Time"};
    for (int k = 0; k < ZERO_KINDS; k++) heads[k + 2] = zero_kind_name((zero_kind)k);
    heads[ZERO_KINDS + 2] = "";
    if (p->n > LISTED) zero_html_details("Ranks as a table", p->out);
    zero_html_table("Each rank's time in these steps", heads, ZERO_KINDS + 3, p->out);
    for (int64_t r = 0; r < p->n; r++) {
        double all = 0.0;
        char text[ZERO_HTML_TEXT];
        for (int k = 0; k < ZERO_KINDS; k++) all += p->spent[r][k];
        snprintf(text, sizeof text, "%d", p->trace->ranks[r].rank);
        zero_html_row(text, p->out);
        zero_cell_seconds(all * 1e-9, text);
        zero_html_cell(text, p->out);
        for (int k = 0; k < ZERO_KINDS; k++) {
            zero_cell_share(p->spent[r][k] / all, text);
            zero_html_cell(text, p->out);
        }
        write_stack(p->spent[r], fmax(all, 1.0), p->out);
        zero_html_row_end(p->out);
    }
    zero_html_table_end(p->out);
    if (p->n > LISTED) zero_html_details_end(p->out);
}

/* ---- texts around it ---- */

/* True if the first rank spends a twentieth of the time outside of steps. */
static bool has_blanks(const zero_timeline *p)
{
    double spent = 0.0;
    for (int k = 0; k < ZERO_KINDS; k++) spent += p->spent[0][k];
    return p->n > 0 && spent > 0.0 && spent < 0.95 * (double)(p->end - p->begin);
}

static void write_lead(const zero_timeline *p)
{
    const zero_traced *t = p->trace;
    char text[400], uncertain[ZERO_HTML_TEXT];
    char steps[64];
    if (p->first_step == p->last_step)
        snprintf(steps, sizeof steps, "step %" PRId64, p->last_step);
    else
        snprintf(steps, sizeof steps, "steps %" PRId64 " to %" PRId64, p->first_step,
                 p->last_step);
    int n = snprintf(text, sizeof text,
                     "%s%" PRId64 " of %d ranks, %s. Nodes are divided by a dashed line.",
                     t->is_simulated ? "Simulated. " : "", p->n, t->world, steps);
    if (t->clock_uncertainty > 0) {
        zero_cell_seconds((double)t->clock_uncertainty * 1e-9, uncertain);
        n += snprintf(text + n, sizeof text - (size_t)n,
                      " Clocks of nodes are known to %s.", uncertain);
    }
    if (has_blanks(p))
        n += snprintf(text + n, sizeof text - (size_t)n,
                      " Blank: between two steps, as for validation.");
    if (t->is_cut)
        snprintf(text + n, sizeof text - (size_t)n, " The end of the trace is missing.");
    zero_html_section("Timeline", text, p->out);
    if (t->note) zero_html_missing(t->note, p->out);
}

static zero_status write_trace(zero_timeline *p)
{
    p->n = zero_min(p->trace->n_ranks, RANKS);
    find_window(p);
    write_lead(p);
    if (p->end > p->begin) {
        choose_sizes(p);
        write_legend(p->out);
        draw(p);
        write_sums(p);
        ZERO_TRY(zero_page_late(p->trace, p->out));
    } else {
        zero_html_missing("The trace has no spans: it was cut off before the first one.",
                          p->out);
    }
    zero_html_section_end(p->out);
    return ZERO_OK;
}

zero_status zero_page_timeline(const zero_traced *trace, FILE *out)
{
    if (!trace) {
        zero_html_section("Timeline", NULL, out);
        zero_html_missing(
            "No trace was given. zero train --trace FILE records one, and zero "
            "report --trace FILE draws it: who computes, who waits, and for whom.",
            out);
        zero_html_section_end(out);
        return ZERO_OK;
    }
    zero_timeline picture = {.trace = trace, .out = out};
    picture.spent = calloc(RANKS, sizeof *picture.spent);
    if (!picture.spent) return zero_fail(ZERO_ERR_NOMEM, "no memory for a timeline");
    zero_status st = write_trace(&picture);
    free(picture.spent);
    return st;
}
