/* Scaling studies: tokens per second, efficiency and memory over the number of ranks, which doubles
 * from tick to tick. Dashed: what a machine would do that loses nothing. */
#include "pages/page_parts.h"

#include <math.h>

#include "pages/cell.h"
#include "pages/escape.h"
#include "pages/page_html.h"
#include "pages/svg.h"
#include "report/text.h"

#define WIDTH  520.0
#define HEIGHT 270.0
#define LEFT   56.0
#define RIGHT  20.0
#define TOP    28.0
#define BOTTOM 228.0

typedef enum { SPEED, EFFICIENCY, MEMORY } quantity;

struct plot {
    const zero_study *study;
    quantity what;
    double unit;
    const char *unit_name;
    int least, most; /* ranks */
    zero_axis y;
    FILE *out;
};

static double value_of(const zero_study_point *point, quantity what)
{
    switch (what) {
    case SPEED: return point->tokens_per_second;
    case EFFICIENCY: return 100.0 * point->efficiency;
    default: return point->memory > 0 ? (double)point->memory : NAN;
    }
}

static double at_ranks(const struct plot *p, int ranks)
{
    double span = WIDTH - RIGHT - LEFT - 20.0;
    if (p->most == p->least) return LEFT + 10.0 + 0.5 * span;
    return LEFT + 10.0 +
           span * log((double)ranks / p->least) / log((double)p->most / p->least);
}

/* The largest value; 0 if the study has none. */
static double measure(struct plot *p)
{
    double most = 0.0;
    p->least = 0;
    for (int s = 0; s < p->study->n_series; s++)
        for (int k = 0; k < p->study->series[s].n; k++) {
            const zero_study_point *point = &p->study->series[s].points[k];
            double value = value_of(point, p->what);
            if (p->least == 0 || point->ranks < p->least) p->least = point->ranks;
            if (point->ranks > p->most) p->most = point->ranks;
            if (isfinite(value)) most = fmax(most, value);
        }
    return most;
}

static const char *scale_bytes(double most, double *unit)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int k = 0;
    for (*unit = 1.0; k < 4 && most >= 1024.0 * *unit; k++) *unit *= 1024.0;
    return names[k];
}

/* The least number of ranks above `ranks` that the study has; 0: none. */
static int next_ranks(const zero_study *study, int ranks)
{
    int next = 0;
    for (int s = 0; s < study->n_series; s++)
        for (int k = 0; k < study->series[s].n; k++) {
            int here = study->series[s].points[k].ranks;
            if (here > ranks && (next == 0 || here < next)) next = here;
        }
    return next;
}

static void draw_ranks(const struct plot *p)
{
    double last = -1e9;
    zero_svg_line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM, "axis", p->out);
    for (int ranks = p->least; ranks > 0; ranks = next_ranks(p->study, ranks)) {
        double x = at_ranks(p, ranks);
        if (x - last < 22.0) continue;
        char text[16];
        snprintf(text, sizeof text, "%d", ranks);
        zero_svg_line(x, BOTTOM, x, BOTTOM + 4.0, "axis", p->out);
        zero_svg_text(x, BOTTOM + 18.0, ZERO_SVG_MIDDLE, "tick", text, p->out);
        last = x;
    }
    zero_svg_text(0.5 * (LEFT + WIDTH - RIGHT), BOTTOM + 36.0, ZERO_SVG_MIDDLE, "tick",
                  "ranks", p->out);
}

static void draw_series(const struct plot *p, int index)
{
    const zero_study_series *s = &p->study->series[index];
    bool is_drawn = false;
    fprintf(p->out, "<path class=\"curve r%d\" d=\"", index % ZERO_PAGE_RUNS);
    for (int k = 0; k < s->n; k++) {
        double value = value_of(&s->points[k], p->what);
        if (!isfinite(value)) continue;
        fprintf(p->out, "%c%.1f %.1f", is_drawn ? 'L' : 'M',
                at_ranks(p, s->points[k].ranks), zero_axis_at(&p->y, value / p->unit));
        is_drawn = true;
    }
    fputs("\"/>\n", p->out);
    for (int k = 0; k < s->n; k++) {
        double value = value_of(&s->points[k], p->what);
        char class[16], title[128], number[ZERO_HTML_TEXT];
        if (!isfinite(value)) continue;
        snprintf(class, sizeof class, "dot r%d", index % ZERO_PAGE_RUNS);
        if (p->what == MEMORY)
            zero_cell_bytes(value, number);
        else
            zero_html_number(value, number);
        snprintf(title, sizeof title, "stage %d, %d ranks: %s%s", s->stage,
                 s->points[k].ranks, number, p->what == EFFICIENCY ? " %" : "");
        zero_svg_dot(at_ranks(p, s->points[k].ranks), zero_axis_at(&p->y, value / p->unit),
                     4.0, class, title, p->out);
    }
}

/* Tokens per second that grow with the ranks, from a stage's first measured point on. */
static void draw_ideal(const struct plot *p, const zero_study_series *s)
{
    int k = 0;
    while (k < s->n && !isfinite(s->points[k].tokens_per_second)) k++;
    if (k == s->n) return;
    double rate = s->points[k].tokens_per_second / s->points[k].ranks;
    fputs("<path class=\"ideal\" d=\"", p->out);
    for (int i = k; i < s->n; i++)
        fprintf(p->out, "%c%.1f %.1f", i == k ? 'M' : 'L', at_ranks(p, s->points[i].ranks),
                zero_axis_at(&p->y, rate * s->points[i].ranks));
    fputs("\"/>\n", p->out);
}

static double most_of_ideal(const zero_study *study)
{
    double most = 0.0;
    for (int s = 0; s < study->n_series; s++)
        for (int k = 0; k < study->series[s].n; k++) {
            const zero_study_point *first = NULL;
            for (int i = 0; i <= k && !first; i++)
                if (isfinite(study->series[s].points[i].tokens_per_second))
                    first = &study->series[s].points[i];
            if (first)
                most = fmax(most, first->tokens_per_second / first->ranks *
                                      study->series[s].points[k].ranks);
        }
    return most;
}

static void draw_ideals(const struct plot *p)
{
    if (p->what == EFFICIENCY) {
        double y = zero_axis_at(&p->y, 100.0);
        zero_svg_line(LEFT, y, WIDTH - RIGHT, y, "ideal", p->out);
    }
    for (int s = 0; s < p->study->n_series && p->what == SPEED; s++)
        draw_ideal(p, &p->study->series[s]);
}

static void draw(const zero_study *study, quantity what, FILE *out)
{
    static const char *const titles[] = {"Tokens per second", "Efficiency, %",
                                         "Memory of rank 0"};
    struct plot p = {
        .study = study, .what = what, .unit = 1.0, .unit_name = "", .out = out};
    char label[128];
    double most = measure(&p);
    if (most == 0.0) return;
    if (what == MEMORY) p.unit_name = scale_bytes(most, &p.unit);
    if (what == EFFICIENCY) most = fmax(most, 100.0);
    if (what == SPEED) most = fmax(most, most_of_ideal(study));
    p.y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, most / p.unit, 5, BOTTOM, TOP);
    snprintf(label, sizeof label, "%s over %d to %d ranks", titles[what], p.least, p.most);
    zero_svg_frame frame = {label, WIDTH, HEIGHT, false};
    fprintf(out, "<figure><h3>%s%s%s</h3>\n", titles[what], p.unit_name[0] ? ", " : "",
            p.unit_name);
    zero_svg_begin(&frame, out);
    zero_svg_left_axis(&p.y, LEFT, WIDTH - RIGHT, out);
    draw_ranks(&p);
    draw_ideals(&p);
    for (int s = 0; s < study->n_series; s++) draw_series(&p, s);
    zero_svg_end(&frame, out);
    fputs("</figure>\n", out);
}

/* ---- the table ---- */

static void write_point(int stage, const zero_study_point *point, FILE *out)
{
    char text[ZERO_HTML_TEXT];
    snprintf(text, sizeof text, "stage %d, %d rank%s%s", stage, point->ranks,
             zero_text_plural(point->ranks), point->fake_nodes ? ", fake nodes" : "");
    zero_html_row(text, out);
    zero_html_number(point->tokens_per_second, text);
    zero_html_cell(text, out);
    zero_cell_share(point->efficiency, text);
    zero_html_cell(text, out);
    zero_cell_seconds(point->step, text);
    zero_html_cell(text, out);
    zero_cell_share(point->exposed, text);
    zero_html_cell(text, out);
    zero_cell_seconds(point->planned, text);
    zero_html_cell(text, out);
    zero_cell_seconds(point->simulated, text);
    zero_html_cell(text, out);
    if (point->memory > 0)
        zero_cell_bytes((double)point->memory, text);
    else
        zero_html_number(NAN, text);
    zero_html_cell(text, out);
    zero_html_row_end(out);
}

static void write_table(const zero_study *study, FILE *out)
{
    static const char *const heads[] = {"Point",          "Tokens/s", "Efficiency",
                                        "Step",           "Exposed",  "Step planned",
                                        "Step simulated", "Memory"};
    zero_html_table("All points; those without a number were not measured", heads, 8, out);
    for (int s = 0; s < study->n_series; s++)
        for (int k = 0; k < study->series[s].n; k++)
            write_point(study->series[s].stage, &study->series[s].points[k], out);
    zero_html_table_end(out);
}

static void write_legend(const zero_study *study, FILE *out)
{
    zero_html_legend(out);
    for (int s = 0; s < study->n_series; s++)
        fprintf(
            out,
            "<li><svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path class=\"curve r%d\" "
            "d=\"M1 6H31\"/></svg>stage %d</li>",
            s % ZERO_PAGE_RUNS, study->series[s].stage);
    fputs(
        "<li><svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path class=\"ideal\" d=\"M1 "
        "6H31\"/></svg>nothing lost</li>",
        out);
    zero_html_legend_end(out);
}

void zero_page_study(const zero_study *study, FILE *out)
{
    zero_html_section(study->is_strong ? "Strong scaling: one global batch for all"
                                       : "Weak scaling: one micro batch for each rank",
                      study->path, out);
    write_legend(study, out);
    fputs("<div class=\"pair\">\n", out);
    draw(study, SPEED, out);
    draw(study, EFFICIENCY, out);
    draw(study, MEMORY, out);
    fputs("</div>\n", out);
    write_table(study, out);
    zero_html_section_end(out);
}
