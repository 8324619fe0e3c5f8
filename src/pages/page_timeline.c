/* The timeline: a row for each rank, what it did in the colour of its kind, and below it,
 * thin, its collectives in flight.
 *
 * A box that is wide enough has a title, and a label if that fits. What is narrower is
 * drawn by columns: each has the colour of the kind that took most of it. So a page stays
 * small however long the trace is. */

#include "pages/breakdown.h"
#include "pages/page_kind.h"
#include "pages/page_parts.h"
#include "pages/svg_axis.h"

#define LEFT    58.0
#define RIGHT   1030.0
#define TOP     26.0
#define LANES   3    /* rows of collectives in flight */
#define RANKS   64   /* rows, at most */
#define STEPS   3    /* that are drawn, at most: the last ones */
#define MARKS   800  /* boxes with titles, at most */
#define LETTER  6.2  /* units of the picture, in labels */
#define COLUMNS 2000 /* of a row, at most */

typedef struct {
    const zero_traced *trace;
    int64_t n; /* ranks that are drawn */
    int64_t first_step, last_step;
    int64_t begin, end;          /* nanoseconds */
    double row, lane, pitch;     /* heights: of a row, of a lane, from row to row */
    double column;               /* units of the picture that have one colour */
    double least;                /* width of a box with a title */
    zero_axis x;                 /* milliseconds */
    double (*spent)[ZERO_KINDS]; /* [n] nanoseconds; owned */
} timeline;

static double at_time(const timeline *t, int64_t time)
{
    return zero_axis_at(&t->x, (double)(time - t->begin) * 1e-6);
}

static bool has_step(const timeline *t, int64_t step)
{
    return step >= t->first_step && step <= t->last_step;
}

/* ---- measuring ---- */

static bool is_wide(const timeline *t, const zero_traced_span *s)
{
    return at_time(t, s->end) - at_time(t, s->begin) >= t->least;
}

static int64_t count_wide(const timeline *t)
{
    int64_t n = 0;
    for (int64_t r = 0; r < t->n; r++) {
        const zero_traced_rank *rank = &t->trace->ranks[r];
        for (int64_t i = 0; i < rank->n_spans; i++)
            n += has_step(t, rank->spans[i].step) && is_wide(t, &rank->spans[i]);
        for (int64_t i = 0; i < rank->n_flights; i++)
            n += has_step(t, rank->flights[i].step) && is_wide(t, &rank->flights[i]);
    }
    return n;
}

/* ---- columns ---- */

static int column_of(const timeline *t, double x)
{
    int k = (int)((x - LEFT) / t->column);
    return k < 0 ? 0 : k < COLUMNS ? k : COLUMNS - 1;
}

/* Adds runs of columns with this mark: strokes as wide as the row is high. */
static void add_strokes(const timeline *t, json_t *strokes, const signed char *marks,
                        int mark, const char *class, double middle, double height)
{
    int n = column_of(t, RIGHT) + 1, before = -1; /* the end of the last run */
    double from = 0.0;
    json_t *runs = json_array();
    for (int k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && marks[end] == marks[k]; end++) continue;
        if (marks[k] != mark) continue;
        if (before < 0) from = LEFT + k * t->column;
        zero_put_item(runs, "{s:f, s:f}", "skip", (k - before) * t->column, "length",
                      (end - k) * t->column);
        before = end;
    }
    if (before >= 0)
        zero_put_item(strokes, "{s:s, s:f, s:f, s:f, s:O}", "class", class, "height",
                      height, "from", from, "middle", middle, "runs", runs);
    json_decref(runs);
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

static json_t *columns_of(const timeline *t, const zero_traced_rank *rank, double top)
{
    double share[COLUMNS][ZERO_KINDS] = {{0.0}};
    signed char kinds[COLUMNS];
    json_t *strokes = json_array();
    /* Adds up what the narrow boxes of a rank take of each column. */
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        double from = at_time(t, s->begin), to = at_time(t, s->end);
        if (!has_step(t, s->step) || to - from >= t->least) continue;
        for (int k = column_of(t, from); k <= column_of(t, to); k++) {
            double left = LEFT + k * t->column;
            share[k][zero_kind_of(s->name)] +=
                fmax(0.0, fmin(to, left + t->column) - fmax(from, left));
        }
    }
    for (int k = 0; k < COLUMNS; k++)
        kinds[k] = (signed char)kind_of_column(share[k], t->column);
    for (int kind = 0; kind < ZERO_KINDS; kind++)
        add_strokes(t, strokes, kinds, kind, zero_kind_class((zero_page_kind)kind),
                    top + 0.5 * t->row, t->row);
    return strokes;
}

/* ---- collectives in flight ---- */

/* Wide ones as boxes; the others as strokes. */
static void add_flights(const timeline *t, const zero_traced_rank *rank, double top,
                        json_t *flights, json_t *strokes)
{
    signed char marks[LANES][COLUMNS] = {{0}};
    double free_from[LANES] = {0.0}, pitch = t->lane + 1.0;
    for (int64_t i = 0; i < rank->n_flights; i++) {
        const zero_traced_span *f = &rank->flights[i];
        double from = at_time(t, f->begin), to = at_time(t, f->end);
        if (!has_step(t, f->step)) continue;
        /* The first lane that is free, else the one that will be first. */
        int lane = 0;
        for (int k = 1; k < LANES && free_from[lane] > from; k++)
            if (free_from[k] < free_from[lane]) lane = k;
        free_from[lane] = fmax(free_from[lane], to);
        if (to - from >= t->least)
            zero_put_item(flights, "{s:f, s:f, s:f, s:I, s:s, s:f, s:I}", "x", from, "y",
                          top + lane * pitch, "width", to - from, "step", f->step, "name",
                          f->name, "took", (double)(f->end - f->begin) * 1e-9, "sent",
                          f->bytes);
        else
            for (int k = column_of(t, from); k <= column_of(t, to); k++) marks[lane][k] = 1;
    }
    for (int lane = 0; lane < LANES; lane++)
        add_strokes(t, strokes, marks[lane], 1, "flight",
                    top + lane * pitch + 0.5 * t->lane, t->lane);
}

static json_t *rank_facts(const timeline *t, int64_t r)
{
    const zero_traced_rank *rank = &t->trace->ranks[r];
    double top = TOP + (double)r * t->pitch;
    json_t *boxes = json_array(), *flights = json_array(), *strokes = json_array();
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        double width = at_time(t, s->end) - at_time(t, s->begin);
        if (has_step(t, s->step) && width >= t->least) {
            double from = at_time(t, s->begin), to = at_time(t, s->end);
            char label[ZERO_KIND_SHORT];
            zero_kind_shorten(s->name, label);
            bool fits = t->row >= 12.0 && LETTER * (double)strlen(label) + 3.0 <= to - from;
            zero_put_item(
                boxes, "{s:f, s:f, s:s, s:I, s:i, s:s, s:f, s:f, s:s}", "x", from, "width",
                to - from, "class", zero_kind_class(zero_kind_of(s->name)), "step", s->step,
                "at", s->at, "name", s->name, "took", (double)(s->end - s->begin) * 1e-9,
                "begun", (double)(s->begin - t->begin) * 1e-9, "label", fits ? label : "");
        }
    }
    add_flights(t, rank, top + t->row + 1.0, flights, strokes);
    return json_pack("{s:i, s:f, s:o, s:o, s:o, s:{s:o}, s:b}", "rank", rank->rank, "top",
                     top, "strokes", columns_of(t, rank, top), "boxes", boxes, "flights",
                     flights, "in_flight", "strokes", strokes, "begins_node",
                     r > 0 && t->trace->ranks[r - 1].node != rank->node);
}

/* ---- the picture ---- */

static json_t *kinds_of(void)
{
    json_t *kinds = json_array();
    for (int k = 0; k < ZERO_KINDS; k++)
        zero_put_item(kinds, "{s:s, s:s}", "class", zero_kind_class((zero_page_kind)k),
                      "name", zero_kind_name((zero_page_kind)k));
    return kinds;
}

static json_t *picture_facts(const timeline *t)
{
    const zero_traced_rank *rank = &t->trace->ranks[0];
    json_t *ranks = json_array(), *steps = json_array();
    int64_t before = 0;
    for (int64_t r = 0; r < t->n; r++) json_array_append_new(ranks, rank_facts(t, r));
    for (int64_t i = 0; i < rank->n_spans; i++) {
        const zero_traced_span *s = &rank->spans[i];
        if (!has_step(t, s->step) || s->step == before) continue;
        before = s->step;
        zero_put_item(steps, "{s:f, s:I}", "x", at_time(t, s->begin), "step", s->step);
    }
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:o, s:o, s:o, s:o}", "left",
                     LEFT, "right", RIGHT, "bottom", TOP + (double)t->n * t->pitch,
                     "height", t->row, "lane", t->lane, "first", t->first_step, "last",
                     t->last_step, "x", zero_axis_facts(&t->x), "ranks", ranks, "steps",
                     steps, "kinds", kinds_of());
}

/* ---- what is around it ---- */

/* Rows of the table: seconds of what each rank did in these steps, by kind. */
static json_t *sums_of(const timeline *p)
{
    json_t *rows = json_array();
    for (int64_t r = 0; r < p->n; r++) {
        json_t *spent = json_array();
        for (int k = 0; k < ZERO_KINDS; k++)
            json_array_append_new(spent, json_real(1e-9 * p->spent[r][k]));
        zero_put_item(rows, "{s:i, s:o}", "rank", p->trace->ranks[r].rank, "spent", spent);
    }
    return json_pack("{s:I, s:o, s:o}", "drawn", p->n, "names", kinds_of(), "rows", rows);
}

/* Adds what is drawn to the facts. */
static void draw(timeline *p, json_t *facts)
{
    double spent = 0.0, length;
    p->n = zero_min(p->trace->n_ranks, RANKS);
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
            if (!has_step(p, s->step)) continue;
            p->begin = zero_min(p->begin, s->begin);
            p->end = zero_max(p->end, s->end);
            p->spent[r][zero_kind_of(s->name)] += (double)(s->end - s->begin);
        }
    length = (double)(p->end - p->begin);
    for (int k = 0; k < ZERO_KINDS; k++) spent += p->spent[0][k];
    /* The first rank spends a twentieth of the time outside of steps. */
    zero_put_members(facts, "{s:I, s:I, s:I, s:b}", "drawn", p->n, "first", p->first_step,
                     "last", p->last_step, "has_blanks",
                     p->n > 0 && spent > 0.0 && spent < 0.95 * length);
    if (p->end <= p->begin) return;
    bool is_few = p->n <= 12;
    p->row = is_few ? 22.0 : p->n <= 32 ? 14.0 : 9.0;
    p->lane = is_few ? 4.0 : 2.0;
    p->pitch = p->row + LANES * (p->lane + 1.0) + (is_few ? 6.0 : 3.0);
    p->column = is_few ? 0.5 : p->n <= 32 ? 1.0 : 2.0;
    p->x = zero_axis_make(ZERO_AXIS_EXACT, 0.0, (double)(p->end - p->begin) * 1e-6, 10,
                          LEFT, RIGHT);
    for (p->least = 3.0; count_wide(p) > MARKS; p->least *= 1.5) continue;
    zero_put_members(facts, "{s:o, s:o}", "picture", picture_facts(p), "sums", sums_of(p));
}

json_t *zero_page_timeline(const zero_traced *trace)
{
    json_t *facts = NULL;
    timeline picture = {.trace = trace, .spent = calloc(RANKS, sizeof *picture.spent)};
    if (picture.spent && zero_breakdown_of(trace, &facts) == ZERO_OK) draw(&picture, facts);
    free(picture.spent);
    return facts;
}
