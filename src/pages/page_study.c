/* Scaling studies: tokens per second, efficiency and memory over the number of ranks,
 * which doubles from tick to tick. Dashed: what a machine would do that loses nothing. */

#include "pages/page_parts.h"
#include "pages/svg_axis.h"

#define LEFT   66.0 /* the least and the most ranks */
#define RIGHT  490.0
#define TOP    28.0
#define BOTTOM 228.0
#define FITS   22.0 /* between numbers of ranks */

/* What is drawn over the ranks, and the most of it; the ideal tokens per second are those
 * of a stage's first measured point for each rank. */
#define FIRST      "first(points, tokens_per_second > 0)"
#define MOST(name) "largest(stages, largest(points, " name "))"
static const struct {
    const char *title, *member, *unit;
    double factor;
    const char *most;
} plots[] = {{"Tokens per second", "tokens_per_second", "grouped", 1.0,
              "max(" MOST("tokens_per_second") ", largest(stages, count(" FIRST
                                               ") > 0 ? or(" FIRST
                                               "/tokens_per_second, 0) / or(" FIRST
                                               "/ranks, 1) * largest(points, ranks) : 0))"},
             {"Efficiency, %", "efficiency", "grouped", 100.0, MOST("efficiency")},
             {"Memory of rank 0", "peak_bytes", "bytes", 1.0, MOST("peak_bytes")}};
enum { SPEED, EFFICIENCY, MEMORY, PLOTS };

/* A plot as it is drawn; NULL: the study has no value of it. */
static json_t *plot_facts(const json_t *study, int what)
{
    double most = plots[what].factor * zero_fact_number(study, plots[what].most);
    double least_ranks = zero_fact_number(study, "least(stages, least(points, ranks))"),
           most_ranks = zero_fact_number(study, MOST("ranks")), unit = 1.0;
    double octaves = log2(most_ranks / least_ranks), before = -1e9;
    if (!(most > 0.0)) return NULL;
    json_t *ticks = json_array();
    const char *in = what == MEMORY ? zero_page_unit(most, &unit) : NULL;
    if (what == EFFICIENCY) most = fmax(most, 100.0);
    const zero_axis y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, most / unit, 5, BOTTOM, TOP);
    for (double ranks = least_ranks; isfinite(ranks);) {
        char next[96];
        double share = octaves > 0.0 ? log2(ranks / least_ranks) / octaves : 0.5;
        double x = LEFT + share * (RIGHT - LEFT);
        if (x - before >= FITS) {
            zero_put_item(ticks, "{s:f, s:i}", "at", x, "text", (int)ranks);
            before = x;
        }
        zero_print(next, "least(stages, least(points, ranks > %.0f ? ranks : 0 / 0))",
                   ranks);
        ranks = zero_fact_number(study, next);
    }
    return json_pack("{s:f, s:f, s:f, s:s, s:s*, s:s, s:s, s:f, s:f, s:f, s:b, s:b, s:i, "
                     "s:i, s:f, s:o, s:{s:o}}",
                     "left", LEFT - 10.0, "right", RIGHT + 10.0, "bottom", BOTTOM, "title",
                     plots[what].title, "in", in, "unit", plots[what].unit, "member",
                     plots[what].member, "factor", plots[what].factor, "scale", unit,
                     "y_most", y.most, "percent", what == EFFICIENCY, "grows",
                     what == SPEED, "least", (int)least_ranks, "most", (int)most_ranks,
                     "full", zero_axis_at(&y, 100.0), "y", zero_axis_facts(&y), "x",
                     "ticks", ticks);
}

json_t *zero_page_together(json_t *const *studies, int n)
{
    json_t *stages = json_array(), *stage, *tree = json_pack("{s:o}", "stages", stages);
    for (int k = 0; k < n; k++) {
        size_t i;
        json_array_foreach(json_object_get(studies[k], "stages"), i, stage)
        {
            json_t *own = json_copy(stage);
            json_object_set(own, "scaling", json_object_get(studies[k], "scaling"));
            json_array_append_new(stages, own);
        }
    }
    json_object_set_new(tree, "plot", plot_facts(tree, EFFICIENCY));
    return tree;
}

json_t *zero_page_study(const json_t *study)
{
    json_t *tree = json_copy((json_t *)study), *drawn = json_array();
    for (int what = 0; what < PLOTS; what++) {
        json_t *facts = plot_facts(study, what);
        if (facts) json_array_append_new(drawn, facts);
    }
    json_object_set_new(tree, "plots", drawn);
    return tree;
}
