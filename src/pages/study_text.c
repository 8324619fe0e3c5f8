/* Studies as text, CSV and JSON. */
#include <inttypes.h>
#include <math.h>

#include "base/legible.h"
#include "pages/cell.h"
#include "pages/study_forms.h"
#include "report/json_put.h"
#include "train/metrics.h"

/* ---- text ---- */

static void print_point(int stage, const zero_study_point *p, FILE *out)
{
    char rate[ZERO_CELL], step[ZERO_CELL], exposed[ZERO_CELL], efficiency[ZERO_CELL],
        memory[ZERO_CELL], planned[ZERO_CELL], simulated[ZERO_CELL];
    zero_cell_number(p->tokens_per_second, rate);
    zero_cell_seconds(p->step, step);
    zero_cell_share(p->exposed, exposed);
    zero_cell_share(p->efficiency, efficiency);
    zero_cell_bytes(p->memory > 0 ? (double)p->memory : NAN, memory);
    zero_cell_seconds(p->planned, planned);
    zero_cell_seconds(p->simulated, simulated);
    fprintf(out, "%5d%7d%c%9s%10s%8s%9s%11s%10s%10s\n", stage, p->ranks,
            p->fake_nodes ? 'f' : ' ', rate, step, efficiency, exposed, memory, planned,
            simulated);
}

void zero_study_print(const zero_study *study, FILE *out)
{
    bool has_fake = false;
    fprintf(out, "%s\n  %s scaling; efficiency relative to a stage's fewest ranks\n\n",
            ZERO_SHOWN(study->path), study->is_strong ? "strong" : "weak");
    fprintf(out, "%5s%7s %9s%10s%8s%9s%11s%10s%10s\n", "stage", "ranks", "tokens/s", "step",
            "eff.", "exposed", "memory", "planned", "simulated");
    for (int s = 0; s < study->n_series; s++)
        for (int i = 0; i < study->series[s].n; i++) {
            print_point(study->series[s].stage, &study->series[s].points[i], out);
            has_fake = has_fake || study->series[s].points[i].fake_nodes;
        }
    if (has_fake) fprintf(out, "f: fake nodes; their times mean nothing\n");
}

/* ---- CSV ---- */

static void put_point(const zero_study *study, int stage, const zero_study_point *p,
                      FILE *out)
{
    zero_csv_text(study->path, out);
    fprintf(out, ",%s,%d,%d,%s", study->is_strong ? "strong" : "weak", stage, p->ranks,
            p->measured ? "true" : "false");
    zero_csv_real(p->tokens_per_second, out);
    zero_csv_real(p->efficiency, out);
    zero_csv_real(p->step, out);
    zero_csv_real(p->lower, out);
    zero_csv_real(p->upper, out);
    zero_csv_real(p->exposed, out);
    zero_csv_real(p->planned, out);
    zero_csv_real(p->simulated, out);
    zero_csv_real(p->memory > 0 ? (double)p->memory : NAN, out);
    fprintf(out, ",%s\n", p->fake_nodes ? "true" : "false");
}

void zero_studies_print_csv(const zero_study *studies, int n, FILE *out)
{
    fputs("study,scaling,stage,ranks,measured,tokens_per_second,efficiency,step_seconds,"
          "lower_quartile,upper_quartile,exposed_share,planned_seconds,simulated_seconds,"
          "peak_bytes,fake_nodes\n",
          out);
    for (int k = 0; k < n; k++)
        for (int s = 0; s < studies[k].n_series; s++)
            for (int i = 0; i < studies[k].series[s].n; i++)
                put_point(&studies[k], studies[k].series[s].stage,
                          &studies[k].series[s].points[i], out);
}

/* ---- JSON ---- */

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *describe_point(const zero_study_point *p)
{
    json_t *point = json_object();
    put_whole(point, "ranks", p->ranks);
    json_object_set_new(point, "measured", json_boolean(p->measured));
    json_object_set_new(point, "tokens_per_second", real(p->tokens_per_second));
    json_object_set_new(point, "efficiency", real(p->efficiency));
    json_object_set_new(point, "step_seconds", real(p->step));
    json_object_set_new(point, "lower_quartile", real(p->lower));
    json_object_set_new(point, "upper_quartile", real(p->upper));
    json_object_set_new(point, "exposed_share", real(p->exposed));
    json_object_set_new(point, "planned_seconds", real(p->planned));
    json_object_set_new(point, "simulated_seconds", real(p->simulated));
    json_object_set_new(point, "peak_bytes",
                        p->memory > 0 ? json_integer(p->memory) : json_null());
    json_object_set_new(point, "fake_nodes", json_boolean(p->fake_nodes));
    return point;
}

json_t *zero_study_describe(const zero_study *study)
{
    json_t *all = json_array(), *object = json_object();
    for (int s = 0; s < study->n_series; s++) {
        json_t *points = json_array();
        for (int i = 0; i < study->series[s].n; i++)
            json_array_append_new(points, describe_point(&study->series[s].points[i]));
        json_array_append_new(all, json_pack("{s:i, s:o}", "stage", study->series[s].stage,
                                             "points", points));
    }
    json_object_set_new(object, "path", zero_metrics_text(study->path));
    put_text(object, "scaling", study->is_strong ? "strong" : "weak");
    if (json_object_set_new(object, "stages", all) == 0) return object;
    json_decref(object);
    return NULL;
}
