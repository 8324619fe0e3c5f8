/* Loss, and tokens per second, over the steps.
 *
 * A run of many steps is thinned to what a screen can show (svg_axis.h): no extreme is lost. Tokens
 * per second also have the median and the quartiles of every 20 steps, so that a disturbed machine
 * is seen. */
#include "pages/page_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "pages/cell.h"
#include "pages/escape.h"
#include "pages/page_html.h"
#include "pages/svg.h"

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

typedef enum { LOSS, SPEED } quantity;

struct plot {
    const zero_page *page;
    int n; /* runs that are drawn */
    quantity what;
    FILE *out;
    double *at, *value; /* [steps of the longest run], owned */
    int64_t *kept;
    zero_axis x, y;
};

static double value_of(const zero_record_step *s, quantity what)
{
    double value = what == LOSS ? s->loss : s->tokens_per_second;
    return isfinite(value) ? value : NAN;
}

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

static void make_axes(struct plot *p)
{
    struct range steps = {INFINITY, -INFINITY}, values = steps;
    for (int run = 0; run < p->n; run++)
        for (int64_t i = 0; i < p->page->records[run].n_steps; i++) {
            const zero_record_step *s = &p->page->records[run].steps[i];
            include(&steps, (double)s->step);
            include(&values, value_of(s, p->what));
            if (p->what == LOSS && s->has_val_loss) include(&values, s->val_loss);
        }
    zero_axis_kind kind = p->what == SPEED ? ZERO_AXIS_ZERO
                          : zero_axis_prefers_log(values.least, values.most)
                              ? ZERO_AXIS_LOG
                              : ZERO_AXIS_AROUND;
    if (steps.least == steps.most) steps.least -= 1.0, steps.most += 1.0;
    p->x = zero_axis_make(ZERO_AXIS_EXACT, steps.least, steps.most, 8, LEFT, WIDTH - RIGHT);
    p->y = zero_axis_make(kind, values.least, values.most, 6, BOTTOM, TOP);
    /* There is no half a step. */
    if (p->x.step < 1.0) p->x.step = 1.0;
}

/* ---- one run ---- */

static void run_class(int run, const char *kind, char class[32])
{
    snprintf(class, 32, "%s r%d", kind, run);
}

static int64_t load(struct plot *p, int run)
{
    const zero_record *r = &p->page->records[run];
    for (int64_t i = 0; i < r->n_steps; i++) {
        p->at[i] = (double)r->steps[i].step;
        p->value[i] = value_of(&r->steps[i], p->what);
    }
    return r->n_steps;
}

static void draw_curve(struct plot *p, int64_t n, const char *class)
{
    zero_svg_points points = {p->at, p->value, n, p->kept};
    zero_svg_curve(&p->x, &p->y, &points, class, p->out);
}

/* Red marks on the ground where there is no number. */
static void draw_gaps(struct plot *p, int64_t n)
{
    int marks = 0;
    for (int64_t i = 0; i < n && marks < MARKS; i++) {
        if (isfinite(p->value[i])) continue;
        char title[64];
        snprintf(title, sizeof title, "step %.0f: not a number", p->at[i]);
        zero_svg_box(zero_axis_at(&p->x, p->at[i]) - 1.0, BOTTOM - 7.0, 2.0, 7.0, "gap",
                     title, p->out);
        marks++;
    }
}

static void draw_validation(struct plot *p, int run)
{
    const zero_record *r = &p->page->records[run];
    int64_t n = 0, nth = 0;
    for (int64_t i = 0; i < r->n_steps; i++) n += r->steps[i].has_val_loss;
    int64_t every = 1 + (n - 1) / MARKS;
    for (int64_t i = 0; i < r->n_steps; i++) {
        const zero_record_step *s = &r->steps[i];
        if (!s->has_val_loss || !isfinite(s->val_loss)) continue;
        if (++nth % every != 0 && nth != n) continue;
        char class[32], title[96];
        run_class(run, "dot", class);
        snprintf(title, sizeof title, "step %" PRId64 ": validation loss %.5g", s->step,
                 s->val_loss);
        zero_svg_dot(zero_axis_at(&p->x, (double)s->step), zero_axis_at(&p->y, s->val_loss),
                     4.0, class, title, p->out);
    }
}

/* ---- medians ---- */

struct window {
    double at, lower, median, upper;
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int64_t n, double share)
{
    double place = share * (double)(n - 1);
    int64_t i = (int64_t)place;
    double rest = place - (double)i;
    return i + 1 < n ? sorted[i] + rest * (sorted[i + 1] - sorted[i]) : sorted[i];
}

/* Windows of at least WINDOW steps each; sorts the values within each, so it comes last. */
static int make_windows(struct plot *p, int64_t n, struct window windows[WINDOWS])
{
    int64_t length = zero_max(WINDOW, (n + WINDOWS - 1) / WINDOWS);
    int n_windows = 0;
    for (int64_t i = 0; i + length <= n; i += length) {
        double *v = p->value + i, middle = 0.5 * (p->at[i] + p->at[i + length - 1]);
        int64_t finite = 0;
        for (int64_t k = 0; k < length; k++)
            if (isfinite(v[k])) v[finite++] = v[k];
        if (finite == 0) continue;
        qsort(v, (size_t)finite, sizeof *v, ascending);
        windows[n_windows++] =
            (struct window){middle, quantile(v, finite, 0.25), quantile(v, finite, 0.5),
                            quantile(v, finite, 0.75)};
    }
    return n_windows;
}

static void draw_windows(struct plot *p, int run, const struct window *w, int n)
{
    fprintf(p->out, "<path class=\"band r%d\" d=\"", run);
    for (int k = 0; k < 2 * n;
         k++) { /* there along the upper quartiles, back along the lower */
        int i = k < n ? k : 2 * n - 1 - k;
        fprintf(p->out, "%c%.1f %.1f", k == 0 ? 'M' : 'L', zero_axis_at(&p->x, w[i].at),
                zero_axis_at(&p->y, k < n ? w[i].upper : w[i].lower));
    }
    fprintf(p->out, "Z\"/>\n<path class=\"curve r%d\" d=\"", run);
    for (int k = 0; k < n; k++)
        fprintf(p->out, "%c%.1f %.1f", k == 0 ? 'M' : 'L', zero_axis_at(&p->x, w[k].at),
                zero_axis_at(&p->y, w[k].median));
    fputs("\"/>\n", p->out);
}

static void draw_speed(struct plot *p, int run, int64_t n)
{
    char class[32];
    struct window windows[WINDOWS];
    bool has_windows = n >= 2 * WINDOW;
    run_class(run,
              n > 4 * (int64_t)WIDTH ? "dense"
              : has_windows          ? "faint"
                                     : "strong",
              class);
    draw_curve(p, n, class);
    if (!has_windows) return;
    int n_windows = make_windows(p, n, windows);
    if (n_windows > 1) draw_windows(p, run, windows, n_windows);
}

static void draw_median(struct plot *p)
{
    double median = p->page->figures[0].tokens_per_second;
    if (p->n != 1 || !isfinite(median)) return;
    double y = zero_axis_at(&p->y, median);
    zero_svg_line(LEFT, y, WIDTH - RIGHT, y, "median", p->out);
}

/* ---- numbers under the pointer ---- */

static void describe(const struct plot *p, double from, double to, FILE *text)
{
    for (int run = 0; run < p->n; run++) {
        const zero_record *r = &p->page->records[run];
        struct range range = {INFINITY, -INFINITY};
        int64_t first = -1, last = -1;
        for (int64_t i = 0; i < r->n_steps; i++) {
            double step = (double)r->steps[i].step;
            if (step < from || step >= to) continue;
            if (first < 0) first = r->steps[i].step;
            last = r->steps[i].step;
            include(&range, value_of(&r->steps[i], p->what));
        }
        if (first < 0) continue;
        if (p->n > 1) fprintf(text, "%s ", r->path);
        fprintf(text, first == last ? "step %" PRId64 : "steps %" PRId64 " to %" PRId64,
                first, last);
        if (range.least > range.most)
            fputs(": not a number\n", text);
        else if (range.least == range.most)
            fprintf(text, ": %.5g\n", range.least);
        else
            fprintf(text, ": %.5g to %.5g\n", range.least, range.most);
    }
}

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
        describe(p, from, from + width, text);
        fclose(text);
        double x = zero_axis_at(&p->x, from) - (width == 1.0 ? 0.5 * pixels : 0.0);
        double left = fmax(x, LEFT), right = fmin(x + pixels, WIDTH - RIGHT);
        if (title[0] && right > left)
            zero_svg_box(left, TOP, right - left, BOTTOM - TOP, "hit", title, p->out);
    }
}

/* ---- the picture ---- */

static void draw_run(struct plot *p, int run)
{
    char class[32];
    int64_t n = load(p, run);
    if (p->what == SPEED) {
        draw_speed(p, run, n);
        return;
    }
    run_class(run, "strong", class);
    draw_curve(p, n, class);
    draw_gaps(p, n);
}

static void draw(struct plot *p)
{
    char label[160];
    make_axes(p);
    snprintf(label, sizeof label, "%s over steps %.0f to %.0f of %d run%s",
             p->what == LOSS ? "Loss" : "Tokens per second", p->x.least, p->x.most, p->n,
             p->n == 1 ? "" : "s");
    zero_svg_frame frame = {label, WIDTH, HEIGHT, false};
    zero_svg_begin(&frame, p->out);
    zero_svg_left_axis(&p->y, LEFT, WIDTH - RIGHT, p->out);
    zero_svg_bottom_axis(&p->x, BOTTOM, p->out);
    zero_svg_text(0.5 * (LEFT + WIDTH - RIGHT), BOTTOM + 36.0, ZERO_SVG_MIDDLE, "tick",
                  "step", p->out);
    for (int run = 0; run < p->n; run++) draw_run(p, run);
    if (p->what == SPEED) draw_median(p);
    draw_hits(p);
    for (int run = 0; run < p->n && p->what == LOSS; run++) draw_validation(p, run);
    zero_svg_end(&frame, p->out);
}

/* ---- texts around it ---- */

static void write_legend(const struct plot *p)
{
    zero_html_legend(p->out);
    for (int run = 0; run < p->n; run++) {
        fprintf(
            p->out,
            "<li><svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path class=\"curve r%d\" "
            "d=\"M1 6H31\"/></svg>",
            run);
        zero_escape(p->page->records[run].path, p->out);
        fputs("</li>", p->out);
    }
    zero_html_legend_end(p->out);
}

static bool has_validation(const struct plot *p)
{
    for (int run = 0; run < p->n; run++)
        for (int64_t i = 0; i < p->page->records[run].n_steps; i++)
            if (p->page->records[run].steps[i].has_val_loss) return true;
    return false;
}

static void write_loss(struct plot *p)
{
    p->what = LOSS;
    make_axes(p);
    char lead[160];
    snprintf(lead, sizeof lead, "Of each step%s. %s scale.",
             has_validation(p) ? "; dots: validation" : "; nothing was validated",
             p->y.kind == ZERO_AXIS_LOG ? "Logarithmic" : "Linear");
    zero_html_section("Loss", lead, p->out);
    draw(p);
    zero_html_section_end(p->out);
}

static void write_speed(struct plot *p)
{
    int64_t longest = 0;
    for (int run = 0; run < p->n; run++)
        longest = zero_max(longest, p->page->records[run].n_steps);
    char lead[240], median[ZERO_HTML_TEXT], windows[96] = "";
    zero_html_number(p->page->figures[0].tokens_per_second, median);
    if (longest >= 2 * WINDOW)
        snprintf(windows, sizeof windows,
                 " Line and band: median and quartiles of every %" PRId64 " steps.",
                 zero_max(WINDOW, (longest + WINDOWS - 1) / WINDOWS));
    snprintf(lead, sizeof lead, "All ranks together.%s%s%s%s", windows,
             p->n == 1 ? " Dotted: the median of all, " : "", p->n == 1 ? median : "",
             p->n == 1 ? "." : "");
    p->what = SPEED;
    zero_html_section("Tokens per second", lead, p->out);
    draw(p);
    zero_html_section_end(p->out);
}

static void write_step(const zero_record_step *s, FILE *out)
{
    char text[ZERO_HTML_TEXT];
    snprintf(text, sizeof text, "%" PRId64, s->step);
    zero_html_row(text, out);
    zero_html_number(s->loss, text);
    zero_html_cell(text, out);
    zero_html_number(s->has_val_loss ? s->val_loss : NAN, text);
    zero_html_cell(text, out);
    zero_html_number(s->tokens_per_second, text);
    zero_html_cell(text, out);
    zero_cell_seconds(s->seconds, text);
    zero_html_cell(text, out);
    zero_cell_seconds(s->exposed, text);
    zero_html_cell(text, out);
    zero_html_row_end(out);
}

static void write_table(const zero_record *r, FILE *out)
{
    static const char *const heads[] = {"Step",     "Loss",    "Validation",
                                        "Tokens/s", "Seconds", "Exposed"};
    int64_t every = 1 + (r->n_steps - 1) / ROWS;
    char caption[128];
    snprintf(caption, sizeof caption,
             every == 1 ? "All %" PRId64 " steps"
                        : "Every %" PRId64 "th step, and the last",
             every == 1 ? r->n_steps : every);
    zero_html_table(caption, heads, 6, out);
    for (int64_t i = 0; i < r->n_steps; i++)
        if (i % every == 0 || i + 1 == r->n_steps) write_step(&r->steps[i], out);
    zero_html_table_end(out);
}

static void write_all(struct plot *p)
{
    if (p->n > 1) write_legend(p);
    if (p->n < p->page->n_records)
        fprintf(p->out, "<p class=\"lead\">The first %d of %d runs are drawn.</p>\n", p->n,
                p->page->n_records);
    fputs("<div class=\"pair\">\n", p->out);
    write_loss(p);
    write_speed(p);
    fputs("</div>\n", p->out);
    zero_html_details("Steps as a table", p->out);
    for (int run = 0; run < p->n; run++) {
        if (p->n > 1) {
            fputs("<h3>", p->out);
            zero_escape(p->page->records[run].path, p->out);
            fputs("</h3>\n", p->out);
        }
        write_table(&p->page->records[run], p->out);
    }
    zero_html_details_end(p->out);
}

zero_status zero_page_curves(const zero_page *page, FILE *out)
{
    int n = page->n_records < ZERO_PAGE_RUNS ? page->n_records : ZERO_PAGE_RUNS;
    int64_t longest = 1;
    for (int run = 0; run < n; run++)
        longest = zero_max(longest, page->records[run].n_steps);
    struct plot plot = {.page = page, .n = n, .out = out};
    plot.at = malloc((size_t)longest * sizeof *plot.at);
    plot.value = malloc((size_t)longest * sizeof *plot.value);
    plot.kept = malloc((size_t)longest * sizeof *plot.kept);
    bool has_room = plot.at && plot.value && plot.kept;
    if (has_room) write_all(&plot);
    free(plot.at);
    free(plot.value);
    free(plot.kept);
    if (has_room) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory to draw %" PRId64 " steps", longest);
}
