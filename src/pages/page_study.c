/* Scaling studies: tokens per second, efficiency and memory over the number of ranks,
 * which doubles from tick to tick. Dashed: what a machine would do that loses nothing. */
#include <math.h>

#include "pages/page_parts.h"
#include "pages/svg_axis.h"

#define LEFT   66.0 /* the least and the most ranks */
#define RIGHT  490.0
#define TOP    28.0
#define BOTTOM 228.0
#define FITS   22.0 /* between numbers of ranks */

/* What is drawn over the ranks. */
static const struct {
    const char *title, *key, *unit;
    double factor;
} plots[] = {{"Tokens per second", "tokens_per_second", "grouped", 1.0},
             {"Efficiency, %", "efficiency", "grouped", 100.0},
             {"Memory of rank 0", "peak_bytes", "bytes", 1.0}};
enum { SPEED, EFFICIENCY, MEMORY, PLOTS };

typedef struct {
    int least, most; /* ranks */
    double unit;
    zero_axis y;
} plot;

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

/* The ideal tokens per second and rank, which grow with the ranks: those of a stage's first
 * measured point. `before` is that of the points before; NAN: none. */
static double ideal_from(double before, const json_t *point, int what)
{
    return what == SPEED && isnan(before) ? value_of(point, what) / ranks_of(point)
                                          : before;
}

static double at_ranks(const plot *p, int ranks)
{
    double span = RIGHT - LEFT;
    if (p->most == p->least) return LEFT + 0.5 * span;
    return LEFT + span * log((double)ranks / p->least) / log((double)p->most / p->least);
}

static json_t *place_of(const plot *p, const json_t *point, double value)
{
    return json_pack("{s:f, s:f, s:i, s:f}", "x", at_ranks(p, ranks_of(point)), "y",
                     zero_axis_at(&p->y, value / p->unit), "ranks", ranks_of(point),
                     "value", value);
}

/* The least number of ranks above `ranks` that the study has; 0: none. */
static int next_ranks(const json_t *stages, int ranks)
{
    int next = 0;
    size_t s, i;
    json_t *stage, *point;
    json_array_foreach((json_t *)stages, s, stage)
        json_array_foreach(json_object_get(stage, "points"), i, point)
    {
        int here = ranks_of(point);
        if (here > ranks && (next == 0 || here < next)) next = here;
    }
    return next;
}

/* A plot as it is drawn; NULL: the study has no value of it. */
static json_t *plot_facts(const json_t *stages, int what)
{
    plot p = {.unit = 1.0};
    double most = 0.0, last = -1e9;
    size_t s, i;
    json_t *stage, *point;
    json_array_foreach((json_t *)stages, s, stage)
    {
        double ideal = NAN;
        json_array_foreach(json_object_get(stage, "points"), i, point)
        {
            int ranks = ranks_of(point);
            ideal = ideal_from(ideal, point, what);
            if (p.least == 0 || ranks < p.least) p.least = ranks;
            if (ranks > p.most) p.most = ranks;
            /* NAN is left out. */
            most = fmax(most, fmax(ideal * ranks, value_of(point, what)));
        }
    }
    if (most == 0.0) return NULL;
    json_t *series = json_array(), *ticks = json_array();
    const char *unit = what == MEMORY ? zero_page_unit(most, &p.unit) : NULL;
    if (what == EFFICIENCY) most = fmax(most, 100.0);
    p.y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, most / p.unit, 5, BOTTOM, TOP);
    json_array_foreach((json_t *)stages, s, stage)
    {
        json_t *points = json_array(), *ideals = json_array();
        double ideal = NAN;
        json_array_foreach(json_object_get(stage, "points"), i, point)
        {
            double value = value_of(point, what);
            ideal = ideal_from(ideal, point, what);
            if (isfinite(value)) json_array_append_new(points, place_of(&p, point, value));
            if (isfinite(ideal))
                json_array_append_new(ideals, place_of(&p, point, ideal * ranks_of(point)));
        }
        json_array_append_new(series, json_pack("{s:I, s:O, s:o, s:o}", "run",
                                                (json_int_t)(s % ZERO_PAGE_RUNS), "stage",
                                                json_object_get(stage, "stage"), "points",
                                                points, "ideals", ideals));
    }
    for (int ranks = p.least; ranks > 0; ranks = next_ranks(stages, ranks)) {
        double x = at_ranks(&p, ranks);
        if (x - last < FITS) continue;
        json_array_append_new(ticks, json_pack("{s:f, s:i}", "at", x, "text", ranks));
        last = x;
    }
    return json_pack(
        "{s:f, s:f, s:f, s:s, s:s*, s:s, s:b, s:i, s:i, s:f, s:o, s:{s:o}, s:o}", "left",
        LEFT - 10.0, "right", RIGHT + 10.0, "bottom", BOTTOM, "title", plots[what].title,
        "in", unit, "unit", plots[what].unit, "percent", what == EFFICIENCY, "least",
        p.least, "most", p.most, "full", zero_axis_at(&p.y, 100.0), "y",
        zero_axis_facts(&p.y), "x", "ticks", ticks, "series", series);
}

json_t *zero_page_study(const json_t *study)
{
    json_t *tree = json_copy((json_t *)study), *drawn = json_array();
    for (int what = 0; what < PLOTS; what++) {
        json_t *facts = plot_facts(json_object_get(study, "stages"), what);
        if (facts) json_array_append_new(drawn, facts);
    }
    json_object_set_new(tree, "plots", drawn);
    return tree;
}
