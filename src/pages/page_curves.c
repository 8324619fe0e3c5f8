/* Loss, and tokens per second, over the steps.
 *
 * A run of many steps is thinned to what a screen can show (svg_axis.h): no extreme is
 * lost. Tokens per second also have the median and the quartiles of every 20 steps, so that
 * a disturbed machine is seen. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "pages/escape.h"
#include "pages/page_parts.h"
#include "pages/svg.h"
#include "train/step_times.h"

#define WIDTH   520.0
#define HEIGHT  270.0
#define LEFT    52.0
#define RIGHT   14.0
#define TOP     12.0
#define BOTTOM  228.0
#define HITS    96 /* places that show their numbers under the pointer */
#define WINDOW  20 /* steps that share a median */
#define WINDOWS 100
#define MARKS   100 /* of steps without a number, and dots */
#define ROWS    40  /* of the table */

struct plot {
    const zero_page *page;
    int n;                 /* runs that are drawn */
    zero_step_column what; /* ZERO_STEP_LOSS or ZERO_STEP_RATE */
    FILE *out;
    double *sorted; /* [steps of the longest run], owned, as the next */
    int64_t *kept;
    zero_axis x, y;
};

/* ---- ranges ---- */

struct range {
    double least, most;
};

static void include(struct range *range, double value)
{
    if (!isfinite(value)) return;
    range->least = fmin(range->least, value);
    range->most = fmax(range->most, value);
}

/* ---- one run ---- */

static void draw_curve(struct plot *p, int r, const char *kind)
{
    char class[32];
    const zero_run *run = &p->page->runs[r];
    zero_svg_points points = {run->steps[ZERO_STEP], run->steps[p->what], run->n, p->kept};
    snprintf(class, sizeof class, "%s r%d", kind, r);
    zero_svg_curve(&p->x, &p->y, &points, class, p->out);
}

static int64_t count_validations(const zero_run *run)
{
    int64_t n = 0;
    for (int64_t i = 0; i < run->n; i++) n += isfinite(run->steps[ZERO_STEP_VAL_LOSS][i]);
    return n;
}

static void draw_validation(struct plot *p, int r)
{
    const zero_run *run = &p->page->runs[r];
    int64_t n = count_validations(run), nth = 0, every = 1 + (n - 1) / MARKS;
    for (int64_t i = 0; i < run->n; i++) {
        char class[32], title[96];
        double step = run->steps[ZERO_STEP][i], loss = run->steps[ZERO_STEP_VAL_LOSS][i];
        if (!isfinite(loss) || (++nth % every != 0 && nth != n)) continue;
        snprintf(class, sizeof class, "dot r%d", r);
        snprintf(title, sizeof title, "step %.0f: validation loss %.5g", step, loss);
        zero_svg_dot(zero_axis_at(&p->x, step), zero_axis_at(&p->y, loss), 4.0, class,
                     title, p->out);
    }
}

/* ---- medians ---- */

struct window {
    double at, lower, median, upper;
};

/* Windows of at least WINDOW steps each. */
static int make_windows(struct plot *p, const zero_run *run, struct window windows[WINDOWS])
{
    int64_t length = zero_max(WINDOW, (run->n + WINDOWS - 1) / WINDOWS);
    const double *at = run->steps[ZERO_STEP];
    int n_windows = 0;
    for (int64_t i = 0; i + length <= run->n; i += length) {
        int64_t finite = 0;
        for (int64_t k = i; k < i + length; k++)
            if (isfinite(run->steps[p->what][k]))
                p->sorted[finite++] = run->steps[p->what][k];
        if (finite == 0) continue;
        zero_step_time t = zero_step_times_of(p->sorted, finite, 0);
        windows[n_windows++] =
            (struct window){0.5 * (at[i] + at[i + length - 1]), t.lower, t.median, t.upper};
    }
    return n_windows;
}

static void draw_speed(struct plot *p, int r)
{
    struct window windows[WINDOWS];
    const zero_run *run = &p->page->runs[r];
    bool has_windows = run->n >= 2 * WINDOW;
    draw_curve(p, r,
               run->n > 4 * (int64_t)WIDTH ? "dense"
               : has_windows               ? "faint"
                                           : "strong");
    int n_windows = has_windows ? make_windows(p, run, windows) : 0;
    if (n_windows > 1) {
        fprintf(p->out, "<path class=\"band r%d\" d=\"", r);
        for (int k = 0; k < 2 * n_windows;
             k++) { /* there along the upper quartiles, back along the lower */
            int i = k < n_windows ? k : 2 * n_windows - 1 - k;
            fprintf(
                p->out, "%c%.1f %.1f", k == 0 ? 'M' : 'L',
                zero_axis_at(&p->x, windows[i].at),
                zero_axis_at(&p->y, k < n_windows ? windows[i].upper : windows[i].lower));
        }
        fprintf(p->out, "Z\"/>\n<path class=\"curve r%d\" d=\"", r);
        for (int k = 0; k < n_windows; k++)
            fprintf(p->out, "%c%.1f %.1f", k == 0 ? 'M' : 'L',
                    zero_axis_at(&p->x, windows[k].at),
                    zero_axis_at(&p->y, windows[k].median));
        fputs("\"/>\n", p->out);
    }
}

static double median_of(const struct plot *p)
{
    return zero_fact_number(p->page->runs[0].tree, "figures/tokens_per_second");
}

/* ---- numbers under the pointer ---- */

static void draw_hits(struct plot *p)
{
    double steps = p->x.most - p->x.least + 1.0;
    double width = fmax(1.0, ceil(steps / HITS));
    double pixels = (p->x.to - p->x.from) / (p->x.most - p->x.least) * width;
    for (double from = p->x.least; from <= p->x.most; from += width) {
        char title[1024] = "";
        /* The last byte stays zero, also if the text does not fit. */
        FILE *text = fmemopen(title, sizeof title - 1, "w");
        if (!text) return;
        double to = from + width;
        for (int r = 0; r < p->n; r++) {
            const zero_run *run = &p->page->runs[r];
            struct range range = {INFINITY, -INFINITY};
            double first = NAN, last = NAN;
            for (int64_t i = 0; i < run->n; i++) {
                double step = run->steps[ZERO_STEP][i];
                if (step < from || step >= to) continue;
                if (isnan(first)) first = step;
                last = step;
                include(&range, run->steps[p->what][i]);
            }
            if (isnan(first)) continue;
            if (p->n > 1) fprintf(text, "%s ", zero_run_path(run));
            fprintf(text, first == last ? "step %.0f" : "steps %.0f to %.0f", first, last);
            if (range.least > range.most)
                fputs(": not a number\n", text);
            else if (range.least == range.most)
                fprintf(text, ": %.5g\n", range.least);
            else
                fprintf(text, ": %.5g to %.5g\n", range.least, range.most);
        }
        fclose(text);
        double x = zero_axis_at(&p->x, from) - (width == 1.0 ? 0.5 * pixels : 0.0);
        double left = fmax(x, LEFT), right = fmin(x + pixels, WIDTH - RIGHT);
        if (title[0] && right > left)
            zero_svg_box(left, TOP, right - left, BOTTOM - TOP, "hit", title, p->out);
    }
}

/* ---- the picture ---- */

static void draw(struct plot *p)
{
    char label[160];
    bool is_loss = p->what == ZERO_STEP_LOSS;
    double median = median_of(p);
    snprintf(label, sizeof label, "%s over steps %.0f to %.0f of %d run%s",
             is_loss ? "Loss" : "Tokens per second", p->x.least, p->x.most, p->n,
             p->n == 1 ? "" : "s");
    zero_svg_frame frame = {label, WIDTH, HEIGHT, false};
    zero_svg_begin(&frame, p->out);
    zero_svg_left_axis(&p->y, LEFT, WIDTH - RIGHT, p->out);
    zero_svg_bottom_axis(&p->x, BOTTOM, p->out);
    zero_svg_text(0.5 * (LEFT + WIDTH - RIGHT), BOTTOM + 36.0, ZERO_SVG_MIDDLE, "tick",
                  "step", p->out);
    for (int r = 0; r < p->n; r++)
        if (is_loss) {
            draw_curve(p, r, "strong");
            /* Red marks on the ground where there is no number. */
            const zero_run *run = &p->page->runs[r];
            int marks = 0;
            for (int64_t i = 0; i < run->n && marks < MARKS; i++) {
                char title[64];
                double step = run->steps[ZERO_STEP][i];
                if (isfinite(run->steps[p->what][i])) continue;
                snprintf(title, sizeof title, "step %.0f: not a number", step);
                zero_svg_box(zero_axis_at(&p->x, step) - 1.0, BOTTOM - 7.0, 2.0, 7.0, "gap",
                             title, p->out);
                marks++;
            }
        } else {
            draw_speed(p, r);
        }
    if (!is_loss && p->n == 1 && isfinite(median))
        zero_svg_line(LEFT, zero_axis_at(&p->y, median), WIDTH - RIGHT,
                      zero_axis_at(&p->y, median), "median", p->out);
    draw_hits(p);
    for (int r = 0; r < p->n && is_loss; r++) draw_validation(p, r);
    zero_svg_end(&frame, p->out);
}

static zero_status write_plot(struct plot *p, zero_step_column what)
{
    int64_t longest = 0, validations = 0;
    p->what = what;
    struct range steps = {INFINITY, -INFINITY}, values = steps;
    for (int r = 0; r < p->n; r++) {
        const zero_run *run = &p->page->runs[r];
        for (int64_t i = 0; i < run->n; i++) {
            include(&steps, run->steps[ZERO_STEP][i]);
            include(&values, run->steps[p->what][i]);
            if (p->what == ZERO_STEP_LOSS)
                include(&values, run->steps[ZERO_STEP_VAL_LOSS][i]);
        }
    }
    zero_axis_kind kind = p->what == ZERO_STEP_RATE ? ZERO_AXIS_ZERO
                          : zero_axis_prefers_log(values.least, values.most)
                              ? ZERO_AXIS_LOG
                              : ZERO_AXIS_AROUND;
    if (steps.least == steps.most) steps.least -= 1.0, steps.most += 1.0;
    p->x = zero_axis_make(ZERO_AXIS_EXACT, steps.least, steps.most, 8, LEFT, WIDTH - RIGHT);
    p->y = zero_axis_make(kind, values.least, values.most, 6, BOTTOM, TOP);
    /* There is no half a step. */
    if (p->x.step < 1.0) p->x.step = 1.0;
    for (int r = 0; r < p->n; r++) {
        longest = zero_max(longest, p->page->runs[r].n);
        validations += count_validations(&p->page->runs[r]);
    }
    int64_t window =
        longest >= 2 * WINDOW ? zero_max(WINDOW, (longest + WINDOWS - 1) / WINDOWS) : 0;
    double median = median_of(p);
    ZERO_TRY(zero_page_form("page", what == ZERO_STEP_LOSS ? "loss" : "speed",
                            json_pack("{s:b, s:b, s:I, s:i, s:o}", "validated",
                                      validations > 0, "is_log", p->y.kind == ZERO_AXIS_LOG,
                                      "window", (json_int_t)window, "runs", p->n, "median",
                                      isfinite(median) ? json_real(median) : json_null()),
                            p->out));
    draw(p);
    fputs("</section>\n", p->out);
    return ZERO_OK;
}

static zero_status write_all(struct plot *p)
{
    if (p->n > 1) {
        fputs("<ul class=\"legend\">", p->out);
        for (int r = 0; r < p->n; r++)
            zero_svg_key("curve", r, zero_run_path(&p->page->runs[r]), p->out);
        fputs("</ul>\n", p->out);
    }
    if (p->n < p->page->n_runs)
        fprintf(p->out, "<p class=\"lead\">The first %d of %d runs are drawn.</p>\n", p->n,
                p->page->n_runs);
    fputs("<div class=\"pair\">\n", p->out);
    ZERO_TRY(write_plot(p, ZERO_STEP_LOSS));
    ZERO_TRY(write_plot(p, ZERO_STEP_RATE));
    fputs("</div>\n<details><summary>Steps as a table</summary>\n", p->out);
    for (int r = 0; r < p->n; r++) {
        if (p->n > 1) {
            fputs("<h3>", p->out);
            zero_escape(zero_run_path(&p->page->runs[r]), p->out);
            fputs("</h3>\n", p->out);
        }
        /* Every so many steps of a run, and its last one. */
        const zero_run *run = &p->page->runs[r];
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
            for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
                double value = run->steps[cells[c].column][i];
                json_object_set_new(row, cells[c].key,
                                    isfinite(value) ? json_real(value) : json_null());
            }
            json_array_append_new(rows, row);
        }
        ZERO_TRY(zero_page_form(
            "run", "page_steps",
            json_pack("{s:o, s:o}", "caption",
                      every == 1
                          ? json_sprintf("All %" PRId64 " steps", run->n)
                          : json_sprintf("Every %" PRId64 "th step, and the last", every),
                      "rows", rows),
            p->out));
    }
    fputs("</details>\n", p->out);
    return ZERO_OK;
}

zero_status zero_page_curves(const zero_page *page, FILE *out)
{
    int64_t longest = 1;
    struct plot plot = {.page = page, .n = page->n_runs, .out = out};
    if (plot.n > ZERO_PAGE_RUNS) plot.n = ZERO_PAGE_RUNS;
    for (int r = 0; r < plot.n; r++) longest = zero_max(longest, page->runs[r].n);
    plot.sorted = malloc((size_t)longest * sizeof *plot.sorted);
    plot.kept = malloc((size_t)longest * sizeof *plot.kept);
    zero_status st =
        plot.sorted && plot.kept
            ? write_all(&plot)
            : zero_fail(ZERO_ERR_NOMEM, "no memory to draw %" PRId64 " steps", longest);
    free(plot.sorted);
    free(plot.kept);
    return st;
}
