/* Scaling studies: tokens per second, efficiency and memory over the number of ranks,
 * which doubles from tick to tick. Dashed: what a machine would do that loses nothing. */
#include <math.h>

#include "base/fail.h"
#include "pages/page_parts.h"
#include "pages/svg.h"

#define WIDTH  520.0
#define HEIGHT 270.0
#define LEFT   56.0
#define RIGHT  20.0
#define TOP    28.0
#define BOTTOM 228.0

/* What is drawn over the ranks. */
static const struct {
    const char *title, *key, *unit;
    double factor;
} plots[] = {{"Tokens per second", "tokens_per_second", "grouped", 1.0},
             {"Efficiency, %", "efficiency", "grouped", 100.0},
             {"Memory of rank 0", "peak_bytes", "bytes", 1.0}};
enum { SPEED, EFFICIENCY, MEMORY, PLOTS };

struct plot {
    const json_t *stages;
    int what;
    double unit;
    int least, most; /* ranks */
    zero_axis y;
    FILE *out;
};

static int ranks_of(const json_t *point)
{
    return (int)json_integer_value(json_object_get(point, "ranks"));
}

/* NAN: unknown. */
static double value_of(const json_t *point, int what)
{
    const json_t *value = json_object_get(point, plots[what].key);
    return json_is_number(value) ? plots[what].factor * json_number_value(value) : NAN;
}

/* The points of a stage; NULL: there are no more stages. */
static json_t *points_of(const struct plot *p, size_t stage)
{
    return json_object_get(json_array_get(p->stages, stage), "points");
}

static double at_ranks(const struct plot *p, int ranks)
{
    double span = WIDTH - RIGHT - LEFT - 20.0;
    if (p->most == p->least) return LEFT + 10.0 + 0.5 * span;
    return LEFT + 10.0 +
           span * log((double)ranks / p->least) / log((double)p->most / p->least);
}

/* Tokens per second that grow with the ranks, from a stage's first measured point on:
 * per rank; NAN: none. */
static double ideal_of(const json_t *points, size_t *first)
{
    size_t n = json_array_size(points);
    for (*first = 0; *first < n; (*first)++) {
        const json_t *point = json_array_get(points, *first);
        double rate = value_of(point, SPEED);
        if (isfinite(rate)) return rate / ranks_of(point);
    }
    return NAN;
}

/* The largest value, and the largest number of ranks and the least; 0 if the study has
 * no value. */
static double measure(struct plot *p)
{
    double most = 0.0;
    json_t *points, *point;
    for (size_t s = 0, i, first; (points = points_of(p, s)); s++) {
        double ideal = ideal_of(points, &first);
        json_array_foreach(points, i, point)
        {
            int ranks = ranks_of(point);
            if (p->least == 0 || ranks < p->least) p->least = ranks;
            if (ranks > p->most) p->most = ranks;
            if (p->what == SPEED && isfinite(ideal) && i >= first)
                most = fmax(most, ideal * ranks);
            most = fmax(most, value_of(point, p->what)); /* NAN is left out */
        }
    }
    return most;
}

/* The least number of ranks above `ranks` that the study has; 0: none. */
static int next_ranks(const struct plot *p, int ranks)
{
    int next = 0;
    json_t *points, *point;
    for (size_t s = 0, i; (points = points_of(p, s)); s++)
        json_array_foreach(points, i, point)
        {
            int here = ranks_of(point);
            if (here > ranks && (next == 0 || here < next)) next = here;
        }
    return next;
}

static void draw_series(const struct plot *p, size_t s)
{
    json_t *points = points_of(p, s), *point;
    bool is_drawn = false;
    size_t i;
    fprintf(p->out, "<path class=\"curve r%zu\" d=\"", s % ZERO_PAGE_RUNS);
    json_array_foreach(points, i, point)
    {
        double value = value_of(point, p->what);
        if (!isfinite(value)) continue;
        fprintf(p->out, "%c%.1f %.1f", is_drawn ? 'L' : 'M', at_ranks(p, ranks_of(point)),
                zero_axis_at(&p->y, value / p->unit));
        is_drawn = true;
    }
    fputs("\"/>\n", p->out);
    json_array_foreach(points, i, point)
    {
        double value = value_of(point, p->what);
        char class[16], title[128], number[ZERO_PAGE_TEXT];
        if (!isfinite(value)) continue;
        snprintf(class, sizeof class, "dot r%zu", s % ZERO_PAGE_RUNS);
        snprintf(
            title, sizeof title, "stage %d, %d ranks: %s%s",
            (int)json_integer_value(json_object_get(json_array_get(p->stages, s), "stage")),
            ranks_of(point), zero_page_number(value, plots[p->what].unit, number),
            p->what == EFFICIENCY ? " %" : "");
        zero_svg_dot(at_ranks(p, ranks_of(point)), zero_axis_at(&p->y, value / p->unit),
                     4.0, class, title, p->out);
    }
}

static void draw(const json_t *stages, int what, FILE *out)
{
    struct plot p = {.stages = stages, .what = what, .unit = 1.0, .out = out};
    char label[128];
    double most = measure(&p);
    if (most == 0.0) return;
    const char *unit = what == MEMORY ? zero_page_unit(most, &p.unit) : NULL;
    if (what == EFFICIENCY) most = fmax(most, 100.0);
    p.y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, most / p.unit, 5, BOTTOM, TOP);
    snprintf(label, sizeof label, "%s over %d to %d ranks", plots[what].title, p.least,
             p.most);
    zero_svg_frame frame = {label, WIDTH, HEIGHT, false};
    fprintf(out, "<figure><h3>%s%s%s</h3>\n", plots[what].title, unit ? ", " : "",
            unit ? unit : "");
    zero_svg_begin(&frame, out);
    zero_svg_left_axis(&p.y, LEFT, WIDTH - RIGHT, out);
    double last = -1e9;
    zero_svg_line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM, "axis", p.out);
    for (int ranks = p.least; ranks > 0; ranks = next_ranks(&p, ranks)) {
        double x = at_ranks(&p, ranks);
        if (x - last < 22.0) continue;
        char text[16];
        snprintf(text, sizeof text, "%d", ranks);
        zero_svg_line(x, BOTTOM, x, BOTTOM + 4.0, "axis", p.out);
        zero_svg_text(x, BOTTOM + 18.0, ZERO_SVG_MIDDLE, "tick", text, p.out);
        last = x;
    }
    zero_svg_text(0.5 * (LEFT + WIDTH - RIGHT), BOTTOM + 36.0, ZERO_SVG_MIDDLE, "tick",
                  "ranks", p.out);
    /* Dashed: full efficiency, or each stage's ideal. */
    double full = zero_axis_at(&p.y, 100.0);
    json_t *points;
    if (p.what == EFFICIENCY)
        zero_svg_line(LEFT, full, WIDTH - RIGHT, full, "ideal", p.out);
    for (size_t s = 0, first; p.what == SPEED && (points = points_of(&p, s)); s++) {
        double ideal = ideal_of(points, &first);
        if (!isfinite(ideal)) continue;
        fputs("<path class=\"ideal\" d=\"", p.out);
        for (size_t i = first; i < json_array_size(points); i++) {
            int ranks = ranks_of(json_array_get(points, i));
            fprintf(p.out, "%c%.1f %.1f", i == first ? 'M' : 'L', at_ranks(&p, ranks),
                    zero_axis_at(&p.y, ideal * ranks));
        }
        fputs("\"/>\n", p.out);
    }
    for (size_t s = 0; s < json_array_size(stages); s++) draw_series(&p, s);
    zero_svg_end(&frame, out);
    fputs("</figure>\n", out);
}

zero_status zero_page_study(json_t *study, FILE *out)
{
    ZERO_TRY(zero_page_form("study", "page_begin", json_incref(study), out));
    for (int what = 0; what < PLOTS; what++)
        draw(json_object_get(study, "stages"), what, out);
    return zero_page_form("study", "page_table", json_incref(study), out);
}
