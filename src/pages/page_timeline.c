/* The timeline: a row for each rank, what it did in the colour of its kind, and below it, thin, its
 * collectives in flight.
 *
 * A box that is wide enough has a title, and a label if that fits. What is narrower is drawn by
 * columns: each has the colour of the kind that took most of it. So a page stays small however long
 * the trace is. */
#include "pages/page_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "pages/cell.h"
#include "pages/page_html.h"
#include "pages/page_kind.h"
#include "pages/svg.h"

#define WIDTH   1040.0
#define LEFT    58.0
#define RIGHT   10.0
#define TOP     26.0
#define RANKS   64   /* rows, at most */
#define STEPS   3    /* that are drawn, at most: the last ones */
#define MARKS   800  /* boxes with titles, at most */
#define LETTER  6.2  /* units of the picture, in labels */
#define COLUMNS 2000 /* of a row, at most */
#define LANES   3    /* rows of collectives in flight */

struct picture {
    const zero_traced *trace;
    int64_t n; /* ranks that are drawn */
    int64_t first_step, last_step;
    int64_t begin, end;      /* nanoseconds */
    double row, lane, pitch; /* heights: of a row, of a lane, from row to row */
    double column;           /* units of the picture */
    double least;            /* width of a box with a title */
    zero_axis x;             /* milliseconds */
    FILE *out;
    double (*spent)[ZERO_KINDS]; /* [n] nanoseconds; owned */
};

static double at_time(const struct picture *p, int64_t time)
{
    return zero_axis_at(&p->x, (double)(time - p->begin) * 1e-6);
}

static bool is_drawn(const struct picture *p, int64_t step)
{
    return step >= p->first_step && step <= p->last_step;
}

/* ---- measuring ---- */

static void find_window(struct picture *p)
{
    const zero_traced *t = p->trace;
    p->last_step = t->last_step;
    p->first_step = zero_max(t->first_step, t->last_step - STEPS + 1);
    p->begin = INT64_MAX;
    p->end = 0;
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t i = 0; i < t->ranks[r].n_spans; i++) {
            const zero_traced_span *s = &t->ranks[r].spans[i];
            if (!is_drawn(p, s->step)) continue;
            p->begin = zero_min(p->begin, s->begin);
            p->end = zero_max(p->end, s->end);
            p->spent[r][zero_kind_of(s->name)] += (double)(s->end - s->begin);
        }
}

static int64_t count_wide(const struct picture *p)
{
    int64_t n = 0;
    double scale = (p->x.to - p->x.from) / (double)(p->end - p->begin);
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t i = 0; i < p->trace->ranks[r].n_spans; i++) {
            const zero_traced_span *s = &p->trace->ranks[r].spans[i];
            n += is_drawn(p, s->step) && (double)(s->end - s->begin) * scale >= p->least;
        }
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t i = 0; i < p->trace->ranks[r].n_flights; i++) {
            const zero_traced_flight *f = &p->trace->ranks[r].flights[i];
            n += is_drawn(p, f->step) && (double)(f->end - f->begin) * scale >= p->least;
        }
    return n;
}

static void choose_sizes(struct picture *p)
{
    bool is_few = p->n <= 12;
    p->row = is_few ? 22.0 : p->n <= 32 ? 14.0 : 9.0;
    p->lane = is_few ? 4.0 : 2.0;
    p->pitch = p->row + LANES * (p->lane + 1.0) + (is_few ? 6.0 : 3.0);
    p->column = is_few ? 0.5 : p->n <= 32 ? 1.0 : 2.0;
    p->x = zero_axis_make(ZERO_AXIS_EXACT, 0.0, (double)(p->end - p->begin) * 1e-6, 10,
                          LEFT, WIDTH - RIGHT);
    for (p->least = 3.0; count_wide(p) > MARKS; p->least *= 1.5) continue;
}

/* ---- a rank ---- */

static void describe(const zero_traced_span *s, const struct picture *p, char *text,
                     size_t size)
{
    char took[ZERO_HTML_TEXT], from[ZERO_HTML_TEXT];
    zero_cell_seconds((double)(s->end - s->begin) * 1e-9, took);
    zero_cell_seconds((double)(s->begin - p->begin) * 1e-9, from);
    snprintf(text, size, "step %" PRId64 ", %d %s: %s from %s on", s->step, s->at, s->name,
             took, from);
}

static void draw_box(const struct picture *p, const zero_traced_span *s, double top)
{
    double from = at_time(p, s->begin), to = at_time(p, s->end);
    char title[256], class[32], label[ZERO_KIND_SHORT];
    zero_kind kind = zero_kind_of(s->name);
    describe(s, p, title, sizeof title);
    zero_svg_box(from, top, to - from, p->row, zero_kind_class(kind), title, p->out);
    zero_kind_shorten(s->name, label);
    if (!label[0] || p->row < 12.0) return;
    snprintf(class, sizeof class, "on %s", zero_kind_class(kind));
    if (LETTER * (double)strlen(label) + 3.0 <= to - from)
        zero_svg_text(0.5 * (from + to), top + 0.5 * p->row + 4.0, ZERO_SVG_MIDDLE, class,
                      label, p->out);
}

static int column_of(const struct picture *p, double x)
{
    int k = (int)((x - LEFT) / p->column);
    return k < 0 ? 0 : k < COLUMNS ? k : COLUMNS - 1;
}

/* What the narrow boxes of a rank take of each column. */
static void fill_columns(const struct picture *p, const zero_traced_rank *rank,
                         double share[COLUMNS][ZERO_KINDS])
{
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        double from = at_time(p, s->begin), to = at_time(p, s->end);
        if (!is_drawn(p, s->step) || to - from >= p->least) continue;
        for (int k = column_of(p, from); k <= column_of(p, to); k++) {
            double left = LEFT + k * p->column;
            share[k][zero_kind_of(s->name)] +=
                fmax(0.0, fmin(to, left + p->column) - fmax(from, left));
        }
    }
}

/* The kind that takes most of a column; -1: nothing that could be seen is there. */
static int kind_of_column(const double share[ZERO_KINDS], double column)
{
    int best = 0;
    double all = 0.0;
    for (int k = 0; k < ZERO_KINDS; k++) {
        all += share[k];
        if (share[k] > share[best]) best = k;
    }
    return all > 0.25 * column ? best : -1;
}

/* One path for each kind: strokes as wide as the row is high. */
static void draw_columns(const struct picture *p, const zero_traced_rank *rank, double top)
{
    double share[COLUMNS][ZERO_KINDS] = {{0.0}};
    int n = column_of(p, WIDTH - RIGHT) + 1;
    fill_columns(p, rank, share);
    for (int kind = 0; kind < ZERO_KINDS; kind++) {
        bool has_begun = false;
        for (int k = 0, end; k < n; k = end) {
            int here = kind_of_column(share[k], p->column);
            for (end = k + 1; end < n; end++)
                if (kind_of_column(share[end], p->column) != here) break;
            if (here != kind) continue;
            if (!has_begun)
                fprintf(p->out, "<path class=\"s-%s\" stroke-width=\"%.0f\" d=\"",
                        zero_kind_class((zero_kind)kind), p->row);
            has_begun = true;
            fprintf(p->out, "M%.1f %.1fh%.1f", LEFT + k * p->column, top + 0.5 * p->row,
                    (end - k) * p->column);
        }
        if (has_begun) fputs("\"/>\n", p->out);
    }
}

static void draw_flights(const struct picture *p, const zero_traced_rank *rank, double top)
{
    double free_from[LANES] = {0.0};
    for (int64_t i = 0; i < rank->n_flights; i++) {
        const zero_traced_flight *f = &rank->flights[i];
        double from = at_time(p, f->begin), to = at_time(p, f->end);
        if (!is_drawn(p, f->step)) continue;
        int lane = 0; /* the first that is free, else the one that will be first */
        for (int k = 1; k < LANES && free_from[lane] > from; k++)
            if (free_from[k] < free_from[lane]) lane = k;
        free_from[lane] = to;
        char title[200], took[ZERO_HTML_TEXT], bytes[ZERO_HTML_TEXT];
        zero_cell_seconds((double)(f->end - f->begin) * 1e-9, took);
        zero_cell_bytes((double)f->sent, bytes);
        snprintf(title, sizeof title, "step %" PRId64 ", %s: %s in flight, %s sent",
                 f->step, f->name, took, bytes);
        if (to - from < 0.3) continue;
        zero_svg_box(from, top + lane * (p->lane + 1.0), to - from, p->lane, "flight",
                     to - from >= p->least ? title : NULL, p->out);
    }
}

static void draw_rank(const struct picture *p, int64_t r)
{
    const zero_traced_rank *rank = &p->trace->ranks[r];
    double top = TOP + (double)r * p->pitch;
    char name[32];
    snprintf(name, sizeof name, p->n <= 32 ? "rank %d" : "%d", rank->rank);
    zero_svg_text(LEFT - 8.0, top + 0.5 * p->row + 4.0, ZERO_SVG_RIGHT, "tick", name,
                  p->out);
    draw_columns(p, rank, top);
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        if (is_drawn(p, s->step) && at_time(p, s->end) - at_time(p, s->begin) >= p->least)
            draw_box(p, s, top);
    }
    draw_flights(p, rank, top + p->row + 1.0);
    if (r > 0 && p->trace->ranks[r - 1].node != rank->node)
        zero_svg_line(0.0, top - 3.0, WIDTH - RIGHT, top - 3.0, "node", p->out);
}

/* ---- the picture ---- */

static void draw_steps(const struct picture *p, double bottom)
{
    const zero_traced_rank *rank = &p->trace->ranks[0];
    int64_t before = 0;
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        if (!is_drawn(p, s->step) || s->step == before) continue;
        char text[32];
        double x = at_time(p, s->begin);
        before = s->step;
        snprintf(text, sizeof text, "step %" PRId64, s->step);
        zero_svg_line(x, TOP - 18.0, x, bottom, "median", p->out);
        zero_svg_text(x + 4.0, TOP - 9.0, ZERO_SVG_LEFT, "tick", text, p->out);
    }
}

static void draw(struct picture *p)
{
    char label[200];
    double bottom = TOP + (double)p->n * p->pitch;
    snprintf(label, sizeof label,
             "Timeline of %" PRId64 " ranks over steps %" PRId64 " to %" PRId64
             "; the table below has its sums",
             p->n, p->first_step, p->last_step);
    zero_svg_frame frame = {label, WIDTH, bottom + 42.0, true};
    zero_svg_begin(&frame, p->out);
    for (int64_t r = 0; r < p->n; r++) draw_rank(p, r);
    draw_steps(p, bottom);
    zero_svg_bottom_axis(&p->x, bottom, p->out);
    zero_svg_text(WIDTH - RIGHT, bottom + 36.0, ZERO_SVG_RIGHT, "tick", "milliseconds",
                  p->out);
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

static void write_sums(const struct picture *p)
{
    const char *heads[ZERO_KINDS + 3] = {"Rank", "Time"};
    for (int k = 0; k < ZERO_KINDS; k++) heads[k + 2] = zero_kind_name((zero_kind)k);
    heads[ZERO_KINDS + 2] = "";
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
}

/* ---- texts around it ---- */

static void write_lead(const struct picture *p)
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
    if (t->is_cut)
        snprintf(text + n, sizeof text - (size_t)n, " The end of the trace is missing.");
    zero_html_section("Timeline", text, p->out);
    if (t->note) zero_html_missing(t->note, p->out);
}

static void write_trace(struct picture *p)
{
    p->n = zero_min(p->trace->n_ranks, RANKS);
    find_window(p);
    write_lead(p);
    if (p->end > p->begin) {
        choose_sizes(p);
        write_legend(p->out);
        draw(p);
        write_sums(p);
    } else {
        zero_html_missing("The trace has no spans: it was cut off before the first one.",
                          p->out);
    }
    zero_html_section_end(p->out);
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
    struct picture picture = {.trace = trace, .out = out};
    picture.spent = calloc(RANKS, sizeof *picture.spent);
    if (!picture.spent) return zero_fail(ZERO_ERR_NOMEM, "no memory for a timeline");
    write_trace(&picture);
    free(picture.spent);
    return ZERO_OK;
}
