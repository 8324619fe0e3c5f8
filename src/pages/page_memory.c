/* The staircase of memory: bytes of each class while an instruction of the step runs, and the
 * classes as they were planned and measured.
 *
 * A long program has fewer columns than instructions. A column shows the worst of its own, so that
 * the peak is never lost. */
#include "pages/page_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pages/cell.h"
#include "pages/page_html.h"
#include "pages/svg.h"

#define WIDTH   1040.0
#define HEIGHT  330.0
#define LEFT    56.0
#define RIGHT   10.0
#define TOP     36.0
#define BOTTOM  270.0
#define COLUMNS 400
#define HITS    160
#define FITS    60.0 /* the width that the name of a pass needs */

struct stairs {
    const zero_record *r;
    int columns;
    double total[COLUMNS + 1]; /* bytes of each column's worst instruction */
    int worst[COLUMNS + 1];
    bool is_used[ZERO_CLASSES];
    double unit; /* bytes of 1 on the axis */
    zero_axis x, y;
    FILE *out;
};

/* ---- measuring ---- */

static double sum_of(const zero_record_instruction *i, int up_to)
{
    double sum = 0.0;
    for (int c = 0; c <= up_to; c++) sum += (double)i->live[c];
    return sum;
}

static int first_of(const struct stairs *s, int column)
{
    return (int)((int64_t)column * s->r->n_program / s->columns);
}

static void measure(struct stairs *s)
{
    int n = s->r->n_program;
    s->columns = n < COLUMNS ? n : COLUMNS;
    for (int k = 0; k < s->columns; k++) {
        s->worst[k] = first_of(s, k);
        for (int i = first_of(s, k); i < first_of(s, k + 1); i++) {
            double sum = sum_of(&s->r->program[i], ZERO_CLASSES - 1);
            if (sum > s->total[k]) {
                s->total[k] = sum;
                s->worst[k] = i;
            }
            for (int c = 0; c < ZERO_CLASSES; c++)
                if (s->r->program[i].live[c] > 0) s->is_used[c] = true;
        }
    }
}

static const char *unit_of(double bytes, double *unit)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int k = 0;
    for (*unit = 1.0; k < 6 && bytes >= 1024.0 * *unit; k++) *unit *= 1024.0;
    return names[k];
}

static int peak_of(const struct stairs *s)
{
    int peak = 0;
    for (int k = 1; k < s->columns; k++)
        if (s->total[k] > s->total[peak]) peak = k;
    return peak;
}

static double left_of(const struct stairs *s, int column)
{
    return zero_axis_at(&s->x, (double)first_of(s, column) + 1.0);
}

/* ---- drawing ---- */

/* The area below the sum of classes 0 to c; those of fewer classes are drawn over it. */
static void draw_area(const struct stairs *s, int c)
{
    double before = NAN;
    fprintf(s->out, "<path class=\"area c%d\" d=\"M%.1f %.0f", c, left_of(s, 0), BOTTOM);
    for (int k = 0; k < s->columns; k++) {
        double top = zero_axis_at(&s->y, sum_of(&s->r->program[s->worst[k]], c) / s->unit);
        if (k > 0 && fabs(top - before) < 0.05) continue;
        if (k > 0) fprintf(s->out, "H%.1f", left_of(s, k));
        fprintf(s->out, "V%.1f", top);
        before = top;
    }
    fprintf(s->out, "H%.1fV%.0fZ\"/>\n", left_of(s, s->columns), BOTTOM);
}

/* The passes of a step. The update begins with LOSS. */
enum pass { FORWARD, BACKWARD, UPDATE };

static enum pass pass_after(enum pass before, const char *op)
{
    if (strcmp(op, "LOSS") == 0) return UPDATE;
    if (before == UPDATE) return UPDATE;
    if (strcmp(op, "FORWARD") == 0) return FORWARD;
    if (strcmp(op, "BACKWARD") == 0 || strcmp(op, "RECOMPUTE") == 0) return BACKWARD;
    return before;
}

static void draw_pass(const struct stairs *s, enum pass pass, int begin, int end)
{
    static const char *const names[] = {"forward", "backward", "update"};
    static const char *const classes[] = {"forward", "backward", "rest"};
    double from = zero_axis_at(&s->x, begin + 1.0), to = zero_axis_at(&s->x, end + 1.0);
    zero_svg_box(from, BOTTOM + 26.0, to - from, 5.0, classes[pass], names[pass], s->out);
    if (to - from >= FITS)
        zero_svg_text(0.5 * (from + to), BOTTOM + 46.0, ZERO_SVG_MIDDLE, "tick",
                      names[pass], s->out);
}

static void draw_passes(const struct stairs *s)
{
    enum pass pass = FORWARD;
    int begin = 0;
    for (int i = 0; i < s->r->n_program; i++) {
        enum pass next = pass_after(pass, s->r->program[i].op);
        if (next == pass) continue;
        if (i > begin) draw_pass(s, pass, begin, i);
        begin = i;
        pass = next;
    }
    draw_pass(s, pass, begin, s->r->n_program);
}

static void draw_peak(const struct stairs *s)
{
    int peak = peak_of(s);
    char bytes[ZERO_HTML_TEXT], text[160];
    double from = left_of(s, peak), to = left_of(s, peak + 1), x = 0.5 * (from + to);
    double y = zero_axis_at(&s->y, s->total[peak] / s->unit);
    zero_cell_bytes(s->total[peak], bytes);
    snprintf(text, sizeof text, "peak %s: %d %s", bytes,
             s->r->program[s->worst[peak]].number, s->r->program[s->worst[peak]].name);
    zero_svg_line(from, y, fmax(to, from + 2.0), y, "peak", s->out);
    zero_svg_line(x, y, x, TOP - 12.0, "peak", s->out);
    zero_svg_anchor anchor = x < 0.3 * WIDTH   ? ZERO_SVG_LEFT
                             : x > 0.7 * WIDTH ? ZERO_SVG_RIGHT
                                               : ZERO_SVG_MIDDLE;
    zero_svg_text(x, TOP - 18.0, anchor, "bad", text, s->out);
}

static void draw_hits(const struct stairs *s)
{
    int every = 1 + (s->columns - 1) / HITS;
    for (int k = 0; k < s->columns; k += every) {
        int end = k + every < s->columns ? k + every : s->columns, worst = k;
        for (int i = k; i < end; i++)
            if (s->total[i] > s->total[worst]) worst = i;
        const zero_record_instruction *i = &s->r->program[s->worst[worst]];
        char title[1024], bytes[ZERO_HTML_TEXT];
        zero_cell_bytes(s->total[worst], bytes);
        int n = snprintf(title, sizeof title, "%d %s: %s", i->number, i->name, bytes);
        for (int c = ZERO_CLASSES - 1; c >= 0; c--) {
            if (i->live[c] == 0) continue;
            zero_cell_bytes((double)i->live[c], bytes);
            n += snprintf(title + n, sizeof title - (size_t)n, "\n%s %s",
                          zero_class_name((zero_class)c), bytes);
        }
        double from = left_of(s, k);
        zero_svg_box(from, TOP, left_of(s, end) - from, BOTTOM - TOP, "hit", title, s->out);
    }
}

static void write_legend(const struct stairs *s)
{
    zero_html_legend(s->out);
    for (int c = ZERO_CLASSES - 1; c >= 0; c--) {
        char class[8];
        if (!s->is_used[c]) continue;
        snprintf(class, sizeof class, "c%d", c);
        zero_html_key(class, zero_class_name((zero_class)c), s->out);
    }
    zero_html_legend_end(s->out);
}

static void draw(struct stairs *s)
{
    char label[200], bytes[ZERO_HTML_TEXT];
    int n = s->r->n_program, peak = peak_of(s);
    const char *unit = unit_of(s->total[peak], &s->unit);
    s->x = zero_axis_make(ZERO_AXIS_EXACT, 1.0, n + 1.0, 12, LEFT, WIDTH - RIGHT);
    if (s->x.step < 1.0) s->x.step = 1.0;
    s->y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, s->total[peak] / s->unit, 6, BOTTOM, TOP);
    zero_cell_bytes(s->total[peak], bytes);
    snprintf(label, sizeof label,
             "Memory by class over the %d instructions of a step; the peak is %s at %s", n,
             bytes, s->r->program[s->worst[peak]].name);
    zero_svg_frame frame = {label, WIDTH, HEIGHT, true};
    zero_svg_begin(&frame, s->out);
    zero_svg_left_axis(&s->y, LEFT, WIDTH - RIGHT, s->out);
    zero_svg_text(LEFT - 8.0, TOP - 18.0, ZERO_SVG_RIGHT, "tick", unit, s->out);
    for (int c = ZERO_CLASSES - 1; c >= 0; c--)
        if (s->is_used[c]) draw_area(s, c);
    zero_svg_bottom_axis(&s->x, BOTTOM, s->out);
    draw_passes(s);
    draw_peak(s);
    draw_hits(s);
    zero_svg_end(&frame, s->out);
}

/* ---- classes ---- */

static void write_class(const char *name, int64_t planned, int64_t measured, double most,
                        FILE *out)
{
    char text[ZERO_HTML_TEXT];
    zero_html_row(name, out);
    zero_cell_bytes((double)planned, text);
    zero_html_cell(text, out);
    zero_html_equal(planned == measured, out);
    zero_cell_bytes((double)measured, text);
    zero_html_cell(text, out);
    zero_html_bar((double)measured / most, "measured", out);
    zero_html_row_end(out);
}

static void write_classes(const zero_record *r, FILE *out)
{
    static const char *const heads[] = {"Class", "Planned", "", "Measured", ""};
    double most = 1.0;
    if (r->n_classes == 0) {
        zero_html_missing(
            "Memory by class, planned and measured, stands in the last line of "
            "the metrics, and this run has none: it did not end.",
            out);
        return;
    }
    for (int c = 0; c < r->n_classes; c++)
        most = fmax(most, (double)r->classes[c].measured);
    most = fmax(most, (double)r->measured_peak);
    zero_html_table("Each class at its own worst instruction", heads, 5, out);
    for (int c = 0; c < r->n_classes; c++) {
        const zero_record_class *class = &r->classes[c];
        if (class->planned > 0 || class->measured > 0)
            write_class(class->name, class->planned, class->measured, most, out);
    }
    write_class("peak of all together", r->planned_peak, r->measured_peak, most, out);
    zero_html_table_end(out);
}

void zero_page_memory(const zero_record *r, FILE *out)
{
    struct stairs stairs = {.r = r, .out = out};
    zero_html_section(
        "Memory over a step",
        "Bytes of rank 0 while each instruction of its program runs, as planned: "
        "run and plan have one layout.",
        out);
    if (r->n_program > 0) {
        measure(&stairs);
        write_legend(&stairs);
        draw(&stairs);
    } else {
        zero_html_missing(
            "These metrics have no program of the step, so its staircase cannot be "
            "drawn: an older version wrote them, or their first line is missing.",
            out);
    }
    write_classes(r, out);
    zero_html_section_end(out);
}
