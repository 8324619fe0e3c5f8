/* The staircase of memory: bytes of each class while an instruction of the step runs.
 *
 * A long program has fewer columns than instructions. A column shows the worst of its own,
 * so that the peak is never lost. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "pages/page_parts.h"
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
    const json_t *program; /* "more/program" (run.c) */
    int n, columns;
    double total[COLUMNS + 1]; /* bytes of each column's worst instruction */
    int worst[COLUMNS + 1];
    int peak; /* column */
    bool is_used[ZERO_CLASSES];
    double unit; /* bytes of 1 on the axis */
    zero_axis x, y;
    FILE *out;
};

/* ---- measuring ---- */

static const char *text_of(const struct stairs *s, int i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(s->program, (size_t)i), key));
}

/* Bytes of a class while instruction i runs. */
static double live(const struct stairs *s, int i, int class)
{
    const json_t *all = json_object_get(json_array_get(s->program, (size_t)i), "live");
    return (double)json_integer_value(json_array_get(all, (size_t) class));
}

static double sum_of(const struct stairs *s, int i, int up_to)
{
    double sum = 0.0;
    for (int c = 0; c <= up_to; c++) sum += live(s, i, c);
    return sum;
}

static int first_of(const struct stairs *s, int column)
{
    return (int)((int64_t)column * s->n / s->columns);
}

/* "3 BACKWARD block 1: 63.23 MiB" */
static int name_column(const struct stairs *s, int k, char *text, size_t size)
{
    const json_t *number =
        json_object_get(json_array_get(s->program, (size_t)s->worst[k]), "number");
    char bytes[ZERO_PAGE_TEXT];
    return snprintf(text, size, "%" JSON_INTEGER_FORMAT " %s: %s",
                    json_integer_value(number), text_of(s, s->worst[k], "name"),
                    zero_page_number(s->total[k], "bytes", bytes));
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
        double top = zero_axis_at(&s->y, sum_of(s, s->worst[k], c) / s->unit);
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

static void draw_peak(const struct stairs *s)
{
    char bytes[ZERO_PAGE_TEXT], text[160];
    double from = left_of(s, s->peak), to = left_of(s, s->peak + 1), x = 0.5 * (from + to);
    double y = zero_axis_at(&s->y, s->total[s->peak] / s->unit);
    const json_t *worst = json_array_get(s->program, (size_t)s->worst[s->peak]);
    snprintf(text, sizeof text, "peak %s: %" JSON_INTEGER_FORMAT " %s",
             zero_page_number(s->total[s->peak], "bytes", bytes),
             json_integer_value(json_object_get(worst, "number")),
             text_of(s, s->worst[s->peak], "name"));
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
        char title[1024], bytes[ZERO_PAGE_TEXT];
        int n = name_column(s, worst, title, sizeof title);
        for (int c = ZERO_CLASSES - 1; c >= 0; c--) {
            double here = live(s, s->worst[worst], c);
            if (here > 0.0)
                n += snprintf(title + n, sizeof title - (size_t)n, "\n%s %s",
                              zero_class_name((zero_class)c),
                              zero_page_number(here, "bytes", bytes));
        }
        double from = left_of(s, k);
        zero_svg_box(from, TOP, left_of(s, end) - from, BOTTOM - TOP, "hit", title, s->out);
    }
}

static void draw(struct stairs *s)
{
    char label[200], bytes[ZERO_PAGE_TEXT];
    const char *unit = zero_page_unit(s->total[s->peak], &s->unit);
    fputs("<ul class=\"legend\">", s->out);
    for (int c = ZERO_CLASSES - 1; c >= 0; c--) {
        char class[8];
        snprintf(class, sizeof class, "c%d", c);
        if (s->is_used[c]) zero_svg_key(class, -1, zero_class_name((zero_class)c), s->out);
    }
    fputs("</ul>\n", s->out);
    s->x = zero_axis_make(ZERO_AXIS_EXACT, 1.0, s->n + 1.0, 12, LEFT, WIDTH - RIGHT);
    if (s->x.step < 1.0) s->x.step = 1.0;
    s->y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, s->total[s->peak] / s->unit, 6, BOTTOM, TOP);
    snprintf(label, sizeof label,
             "Memory by class over the %d instructions of a step; the peak is %s at %s",
             s->n, zero_page_number(s->total[s->peak], "bytes", bytes),
             text_of(s, s->worst[s->peak], "name"));
    zero_svg_frame frame = {label, WIDTH, HEIGHT, true};
    zero_svg_begin(&frame, s->out);
    zero_svg_left_axis(&s->y, LEFT, WIDTH - RIGHT, s->out);
    zero_svg_text(LEFT - 8.0, TOP - 18.0, ZERO_SVG_RIGHT, "tick", unit, s->out);
    for (int c = ZERO_CLASSES - 1; c >= 0; c--)
        if (s->is_used[c]) draw_area(s, c);
    zero_svg_bottom_axis(&s->x, BOTTOM, s->out);
    enum pass pass = FORWARD;
    int begin = 0;
    for (int i = 0; i < s->n; i++) {
        enum pass next = pass_after(pass, text_of(s, i, "op"));
        if (next == pass) continue;
        if (i > begin) draw_pass(s, pass, begin, i);
        begin = i;
        pass = next;
    }
    draw_pass(s, pass, begin, s->n);
    draw_peak(s);
    draw_hits(s);
    zero_svg_end(&frame, s->out);
}

void zero_page_stairs(const json_t *program, FILE *out)
{
    struct stairs stairs = {.program = program, .out = out};
    stairs.n = (int)json_array_size(program);
    stairs.columns = stairs.n < COLUMNS ? stairs.n : COLUMNS;
    for (int k = 0; k < stairs.columns; k++) {
        stairs.worst[k] = first_of(&stairs, k);
        for (int i = first_of(&stairs, k); i < first_of(&stairs, k + 1); i++) {
            double sum = sum_of(&stairs, i, ZERO_CLASSES - 1);
            if (sum > stairs.total[k]) {
                stairs.total[k] = sum;
                stairs.worst[k] = i;
            }
            for (int c = 0; c < ZERO_CLASSES; c++)
                stairs.is_used[c] |= live(&stairs, i, c) > 0.0;
        }
        if (stairs.total[k] > stairs.total[stairs.peak]) stairs.peak = k;
    }
    draw(&stairs);
}
