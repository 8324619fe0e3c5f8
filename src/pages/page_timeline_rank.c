/* A row of the timeline.
 *
 * A box that is wide enough has a title, and a label if that fits. What is narrower is drawn by
 * columns: each has the colour of the kind that took most of it. So a page stays small however long
 * the trace is. */
#include "pages/page_timeline.h"

#include <inttypes.h>
#include <string.h>

#include "pages/page_parts.h"
#include "pages/svg.h"

#define LETTER  6.2  /* units of the picture, in labels */
#define COLUMNS 2000 /* of a row, at most */

/* ---- boxes ---- */

static void draw_box(const zero_timeline *t, const zero_traced_span *s, double top)
{
    double from = zero_timeline_at(t, s->begin), to = zero_timeline_at(t, s->end);
    char title[256], class[32], label[ZERO_KIND_SHORT], took[ZERO_PAGE_TEXT],
        begun[ZERO_PAGE_TEXT];
    zero_page_kind kind = zero_kind_of(s->name);
    zero_page_number((double)(s->end - s->begin) * 1e-9, "seconds", took);
    zero_page_number((double)(s->begin - t->begin) * 1e-9, "seconds", begun);
    snprintf(title, sizeof title, "step %" PRId64 ", %d %s: %s from %s on", s->step, s->at,
             s->name, took, begun);
    zero_svg_box(from, top, to - from, t->row, zero_kind_class(kind), title, t->out);
    zero_kind_shorten(s->name, label);
    if (!label[0] || t->row < 12.0) return;
    snprintf(class, sizeof class, "on %s", zero_kind_class(kind));
    if (LETTER * (double)strlen(label) + 3.0 <= to - from)
        zero_svg_text(0.5 * (from + to), top + 0.5 * t->row + 4.0, ZERO_SVG_MIDDLE, class,
                      label, t->out);
}

/* ---- columns ---- */

static int column_of(const zero_timeline *t, double x)
{
    int k = (int)((x - ZERO_TIMELINE_LEFT) / t->column);
    return k < 0 ? 0 : k < COLUMNS ? k : COLUMNS - 1;
}

/* Runs of columns with this mark as one path: strokes as wide as the row is high. */
static void draw_runs(const zero_timeline *t, const signed char *marks, int mark,
                      const char *class, double middle, double height)
{
    int n = column_of(t, ZERO_TIMELINE_RIGHT) + 1,
        before = -1; /* the end of the last run */
    for (int k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && marks[end] == marks[k]; end++) continue;
        if (marks[k] != mark) continue;
        if (before < 0)
            fprintf(t->out, "<path class=\"s-%s\" stroke-width=\"%g\" d=\"M%g %g", class,
                    height, ZERO_TIMELINE_LEFT + k * t->column, middle);
        else
            fprintf(t->out, "m%g 0", (k - before) * t->column);
        fprintf(t->out, "h%g", (end - k) * t->column);
        before = end;
    }
    if (before >= 0) fputs("\"/>\n", t->out);
}

/* Adds up what the narrow boxes of a rank take of each column. */
static void fill_columns(const zero_timeline *t, const zero_traced_rank *rank,
                         double share[COLUMNS][ZERO_KINDS])
{
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        double from = zero_timeline_at(t, s->begin), to = zero_timeline_at(t, s->end);
        if (!zero_timeline_has(t, s->step) || to - from >= t->least) continue;
        for (int k = column_of(t, from); k <= column_of(t, to); k++) {
            double left = ZERO_TIMELINE_LEFT + k * t->column;
            share[k][zero_kind_of(s->name)] +=
                fmax(0.0, fmin(to, left + t->column) - fmax(from, left));
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

static void draw_columns(const zero_timeline *t, const zero_traced_rank *rank, double top)
{
    double share[COLUMNS][ZERO_KINDS] = {{0.0}};
    signed char kinds[COLUMNS];
    fill_columns(t, rank, share);
    for (int k = 0; k < COLUMNS; k++)
        kinds[k] = (signed char)kind_of_column(share[k], t->column);
    for (int kind = 0; kind < ZERO_KINDS; kind++)
        draw_runs(t, kinds, kind, zero_kind_class((zero_page_kind)kind), top + 0.5 * t->row,
                  t->row);
}

/* ---- collectives in flight ---- */

static void draw_flight(const zero_timeline *t, const zero_traced_flight *f, double top)
{
    char title[200], took[ZERO_PAGE_TEXT], bytes[ZERO_PAGE_TEXT];
    double from = zero_timeline_at(t, f->begin), to = zero_timeline_at(t, f->end);
    zero_page_number((double)(f->end - f->begin) * 1e-9, "seconds", took);
    zero_page_number((double)f->sent, "bytes", bytes);
    snprintf(title, sizeof title, "step %" PRId64 ", %s: %s in flight, %s sent", f->step,
             f->name, took, bytes);
    zero_svg_box(from, top, to - from, t->lane, "flight", title, t->out);
}

/* The first lane that is free, else the one that will be first. */
static int choose_lane(double free_from[ZERO_TIMELINE_LANES], double from, double to)
{
    int lane = 0;
    for (int k = 1; k < ZERO_TIMELINE_LANES && free_from[lane] > from; k++)
        if (free_from[k] < free_from[lane]) lane = k;
    free_from[lane] = fmax(free_from[lane], to);
    return lane;
}

static void draw_flights(const zero_timeline *t, const zero_traced_rank *rank, double top)
{
    signed char marks[ZERO_TIMELINE_LANES][COLUMNS] = {{0}};
    double free_from[ZERO_TIMELINE_LANES] = {0.0}, pitch = t->lane + 1.0;
    for (int64_t i = 0; i < rank->n_flights; i++) {
        const zero_traced_flight *f = &rank->flights[i];
        double from = zero_timeline_at(t, f->begin), to = zero_timeline_at(t, f->end);
        if (!zero_timeline_has(t, f->step)) continue;
        int lane = choose_lane(free_from, from, to);
        if (to - from >= t->least)
            draw_flight(t, f, top + lane * pitch);
        else
            for (int k = column_of(t, from); k <= column_of(t, to); k++) marks[lane][k] = 1;
    }
    for (int lane = 0; lane < ZERO_TIMELINE_LANES; lane++)
        draw_runs(t, marks[lane], 1, "flight", top + lane * pitch + 0.5 * t->lane, t->lane);
}

void zero_timeline_rank(const zero_timeline *t, int64_t r)
{
    const zero_traced_rank *rank = &t->trace->ranks[r];
    double top = ZERO_TIMELINE_TOP + (double)r * t->pitch;
    char name[32];
    snprintf(name, sizeof name, t->n <= 32 ? "rank %d" : "%d", rank->rank);
    zero_svg_text(ZERO_TIMELINE_LEFT - 8.0, top + 0.5 * t->row + 4.0, ZERO_SVG_RIGHT,
                  "tick", name, t->out);
    draw_columns(t, rank, top);
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        double width = zero_timeline_at(t, s->end) - zero_timeline_at(t, s->begin);
        if (zero_timeline_has(t, s->step) && width >= t->least) draw_box(t, s, top);
    }
    draw_flights(t, rank, top + t->row + 1.0);
    if (r > 0 && t->trace->ranks[r - 1].node != rank->node)
        zero_svg_line(0.0, top - 3.0, ZERO_TIMELINE_RIGHT, top - 3.0, "node", t->out);
}
