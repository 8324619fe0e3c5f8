/* Loss, and tokens per second, over the steps.
 *
 * A run of many steps is thinned to what a screen can show (svg_axis.h): no extreme is
 * lost. Tokens per second also have the median and the quartiles of every 20 steps, so that
 * a disturbed machine is seen. */

#include "pages/page_parts.h"
#include "pages/svg_axis.h"
#include "train/metrics.h"

#define LEFT    52.0
#define RIGHT   506.0
#define TOP     12.0
#define BOTTOM  228.0
#define DENSE   2080 /* steps of a run that is drawn thin */
#define HITS    96   /* places that show their numbers under the pointer */
#define WINDOW  20   /* steps that share a median */
#define WINDOWS 100
#define MARKS   100 /* of steps without a number, and dots */
#define ROWS    40  /* of the table */

typedef struct {
    const zero_page *page;
    int n;                 /* runs that are drawn */
    zero_step_column what; /* ZERO_STEP_LOSS or ZERO_STEP_RATE */
    int64_t longest;       /* steps */
    double *sorted;        /* [longest], owned, as the next */
    int64_t *kept;
    zero_axis x, y;
} plot;

typedef struct {
    double least, most;
} bounds;

static void include(bounds *range, double value)
{
    if (!isfinite(value)) return;
    range->least = fmin(range->least, value);
    range->most = fmax(range->most, value);
}

static json_t *place(const plot *p, double step, double value)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "x", zero_axis_at(&p->x, step), "y",
                     zero_axis_at(&p->y, value), "step", step, "value", value);
}

/* Steps of a window's median. */
static int64_t window_of(int64_t steps)
{
    return steps >= 2 * WINDOW ? zero_max(WINDOW, (steps + WINDOWS - 1) / WINDOWS) : 0;
}

/* Medians of windows, and the band of their quartiles: there along the upper ones, back
 * along the lower. */
static void add_windows(const plot *p, const zero_run *run, json_t *of)
{
    const double *at = run->steps[ZERO_STEP], *value = run->steps[p->what];
    json_t *medians = json_array(), *band = json_array();
    int64_t length = window_of(run->n);
    for (int64_t i = 0; length > 0 && i + length <= run->n; i += length) {
        int64_t finite = 0;
        for (int64_t k = i; k < i + length; k++)
            if (isfinite(value[k])) p->sorted[finite++] = value[k];
        if (finite == 0) continue;
        zero_step_time t = zero_step_times_of(p->sorted, finite, 0);
        double middle = 0.5 * (at[i] + at[i + length - 1]);
        size_t half = json_array_size(medians);
        json_array_append_new(medians, place(p, middle, t.median));
        json_array_insert_new(band, half, place(p, middle, t.upper));
        json_array_insert_new(band, half + 1, place(p, middle, t.lower));
    }
    json_object_set_new(of, "medians", medians);
    json_object_set_new(of, "band", band);
}

/* A run's curve, marks on the ground where there is no number, and validation losses. */
static json_t *curve_facts(const plot *p, int r)
{
    const zero_run *run = &p->page->runs[r];
    const double *at = run->steps[ZERO_STEP], *value = run->steps[p->what],
                 *validated = run->steps[ZERO_STEP_VAL_LOSS];
    json_t *curve = zero_axis_curve(&p->x, &p->y, at, value, run->n, p->kept);
    int64_t n = 0, nth = 0;
    zero_put_whole(curve, "run", r);
    if (p->what != ZERO_STEP_LOSS) {
        zero_put_string(curve, "kind",
                        run->n > DENSE         ? "dense"
                        : run->n >= 2 * WINDOW ? "faint"
                                               : "strong");
        add_windows(p, run, curve);
        return curve;
    }
    json_t *gaps = json_array(), *dots = json_array();
    for (int64_t i = 0; i < run->n; i++) n += isfinite(validated[i]);
    for (int64_t i = 0; i < run->n; i++) {
        if (!isfinite(value[i]) && json_array_size(gaps) < MARKS)
            json_array_append_new(gaps, place(p, at[i], 0.0));
        if (!isfinite(validated[i]) || (++nth % (1 + (n - 1) / MARKS) != 0 && nth != n))
            continue;
        json_array_append_new(dots, place(p, at[i], validated[i]));
    }
    zero_put_string(curve, "kind", "strong");
    json_object_set_new(curve, "gaps", gaps);
    json_object_set_new(curve, "dots", dots);
    return curve;
}

/* What the pointer shows of every few steps, run by run. */
static json_t *hits_of(const plot *p)
{
    json_t *hits = json_array();
    double width = fmax(1.0, ceil((p->x.most - p->x.least + 1.0) / HITS));
    double pixels = (p->x.to - p->x.from) / (p->x.most - p->x.least) * width;
    for (double from = p->x.least; from <= p->x.most; from += width) {
        json_t *lines = json_array();
        for (int r = 0; r < p->n; r++) {
            const zero_run *run = &p->page->runs[r];
            bounds steps = {INFINITY, -INFINITY}, values = steps;
            for (int64_t i = 0; i < run->n; i++) {
                double step = run->steps[ZERO_STEP][i];
                if (step < from || step >= from + width) continue;
                include(&steps, step);
                include(&values, run->steps[p->what][i]);
            }
            if (steps.least <= steps.most)
                zero_put_item(lines, "{s:s, s:f, s:f, s:o, s:o}", "path",
                              zero_run_path(run), "first", steps.least, "last", steps.most,
                              "least", zero_metrics_real(values.least), "most",
                              zero_metrics_real(values.most));
        }
        double x = zero_axis_at(&p->x, from) - (width == 1.0 ? 0.5 * pixels : 0.0);
        double left = fmax(x, LEFT), right = fmin(x + pixels, RIGHT);
        if (json_array_size(lines) > 0 && right > left)
            zero_put_item(hits, "{s:f, s:f, s:O}", "x", left, "width", right - left,
                          "lines", lines);
        json_decref(lines);
    }
    return hits;
}

static json_t *plot_facts(plot *p, zero_step_column what)
{
    bounds steps = {INFINITY, -INFINITY}, values = steps;
    bool is_loss = what == ZERO_STEP_LOSS, validated = false;
    json_t *curves = json_array();
    p->what = what;
    for (int r = 0; r < p->n; r++) {
        const zero_run *run = &p->page->runs[r];
        for (int64_t i = 0; i < run->n; i++) {
            double val_loss = run->steps[ZERO_STEP_VAL_LOSS][i];
            include(&steps, run->steps[ZERO_STEP][i]);
            include(&values, run->steps[what][i]);
            if (is_loss) include(&values, val_loss);
            validated = validated || isfinite(val_loss);
        }
    }
    zero_axis_kind kind = !is_loss ? ZERO_AXIS_ZERO
                          : zero_axis_prefers_log(values.least, values.most)
                              ? ZERO_AXIS_LOG
                              : ZERO_AXIS_AROUND;
    if (steps.least == steps.most) steps.least -= 1.0, steps.most += 1.0;
    p->x = zero_axis_make(ZERO_AXIS_EXACT, steps.least, steps.most, 8, LEFT, RIGHT);
    p->y = zero_axis_make(kind, values.least, values.most, 6, BOTTOM, TOP);
    /* There is no half a step. */
    if (p->x.step < 1.0) p->x.step = 1.0;
    for (int r = 0; r < p->n; r++) json_array_append_new(curves, curve_facts(p, r));
    double median = zero_fact_number(p->page->runs[0].tree, "figures/tokens_per_second");
    bool has_line = !is_loss && p->n == 1 && isfinite(median);
    return json_pack("{s:b, s:b, s:b, s:I, s:f, s:f, s:o, s:o, s:o, s:o*, s:o, s:o}",
                     "is_loss", is_loss, "validated", validated, "is_log",
                     p->y.kind == ZERO_AXIS_LOG, "window", window_of(p->longest), "first",
                     p->x.least, "last", p->x.most, "x", zero_axis_facts(&p->x), "y",
                     zero_axis_facts(&p->y), "median", zero_metrics_real(median),
                     "median_at", has_line ? json_real(zero_axis_at(&p->y, median)) : NULL,
                     "curves", curves, "hits", hits_of(p));
}

/* Every so many steps of a run, and its last one. */
static json_t *table_of(const zero_run *run)
{
    static const struct {
        const char *key;
        zero_step_column column;
    } cells[] = {{"loss", ZERO_STEP_LOSS},
                 {"val_loss", ZERO_STEP_VAL_LOSS},
                 {"rate", ZERO_STEP_RATE},
                 {"seconds", ZERO_STEP_SECONDS},
                 {"exposed", ZERO_STEP_EXPOSED}};
    int64_t every = 1 + (run->n - 1) / ROWS;
    json_t *rows = json_array();
    for (int64_t i = 0; i < run->n; i++) {
        if (i % every != 0 && i + 1 != run->n) continue;
        json_t *row = json_pack("{s:I}", "step", (json_int_t)run->steps[ZERO_STEP][i]);
        for (int c = 0; c < ZERO_COUNT(cells); c++)
            json_object_set_new(row, cells[c].key,
                                zero_metrics_real(run->steps[cells[c].column][i]));
        json_array_append_new(rows, row);
    }
    return json_pack("{s:s, s:I, s:I, s:o}", "path", zero_run_path(run), "n", run->n,
                     "every", every, "rows", rows);
}

json_t *zero_page_curves(const zero_page *page)
{
    plot p = {.page = page, .n = (int)zero_min(page->n_runs, ZERO_PAGE_RUNS), .longest = 1};
    json_t *runs = json_array(), *facts = NULL;
    for (int r = 0; r < p.n; r++) {
        p.longest = zero_max(p.longest, page->runs[r].n);
        json_array_append_new(runs, table_of(&page->runs[r]));
    }
    p.sorted = malloc((size_t)p.longest * sizeof *p.sorted);
    p.kept = malloc((size_t)p.longest * sizeof *p.kept);
    if (p.sorted && p.kept)
        facts =
            json_pack("{s:f, s:f, s:f, s:i, s:O, s:[o, o]}", "left", LEFT, "right", RIGHT,
                      "bottom", BOTTOM, "all", page->n_runs, "runs", runs, "plots",
                      plot_facts(&p, ZERO_STEP_LOSS), plot_facts(&p, ZERO_STEP_RATE));
    json_decref(runs);
    free(p.sorted);
    free(p.kept);
    return facts;
}
