#include "pages/study.h"

#include "base/legible.h"
#include "pages/expect.h"
#include "pages/forms.h"
#include "train/metrics.h"

/* ---- points ---- */

int64_t zero_point_whole(const json_t *point, const char *key)
{
    return zero_get_whole(point, key);
}

bool zero_point_is(const json_t *point, const char *state)
{
    const char *own = zero_get_string(point, "state");
    return own && zero_same_text(own, state);
}

const char *zero_point_name(const json_t *point, char text[ZERO_POINT_TEXT])
{
    snprintf(text, ZERO_POINT_TEXT, "stage%d-ranks%d",
             (int)zero_point_whole(point, "stage"), (int)zero_point_whole(point, "ranks"));
    return text;
}

const char *zero_point_words(const json_t *point, char text[ZERO_POINT_TEXT])
{
    int ranks = (int)zero_point_whole(point, "ranks");
    snprintf(text, ZERO_POINT_TEXT, "stage %d on %d rank%s",
             (int)zero_point_whole(point, "stage"), ranks, ranks == 1 ? "" : "s");
    return text;
}

json_t *zero_study_points(const int *stages, int n_stages, const int *ranks, int n_ranks)
{
    json_t *points = json_array();
    for (int k = 0; k < n_stages * n_ranks; k++) {
        int stage = stages[k / n_ranks], n = ranks[k % n_ranks];
        zero_put_item(points, "{s:i, s:i, s:s, s:o, s:n, s:n}", "stage", stage, "ranks", n,
                      "state", "missing", "metrics",
                      json_sprintf("points/stage%d-ranks%d.jsonl", stage, n), "planned",
                      "simulated");
    }
    return points;
}

json_t *zero_study_find(const json_t *study, int64_t stage, int64_t ranks)
{
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(study, "points"), i, point)
    {
        if (zero_point_whole(point, "stage") == stage &&
            zero_point_whole(point, "ranks") == ranks)
            return point;
    }
    return NULL;
}

int zero_study_count(const json_t *study, const char *state)
{
    int n = 0;
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(study, "points"), i, point)
    {
        n += zero_point_is(point, state);
    }
    return n;
}

/* ---- a measurement ---- */

/* These facts say how even the ranks were, and which shares of the machine's and the
 * wire's measured speed they used. They follow from a run's first and last line (`run`,
 * `final`), its number of steps, and the seconds of one. */
static const char of_the_machine[] =
    "imbalance = final/rank_seconds/compute/most / final/rank_seconds/compute/mean - 1; "
    "slowest_rank = least(final/rank_seconds/compute/ranks, item == "
    "final/rank_seconds/compute/most ? index : 0 / 0); products_share = 1 * "
    "final/peak/share; inside_bytes = sum(final/communication, "
    "or(inside_nodes/bytes_sent, 0)) / steps; across_bytes = sum(final/communication, "
    "or(across_nodes/bytes_sent, 0)) / steps; wire_share = sum(final/communication, "
    "or(across_nodes/bytes_sent, 0)) / steps * run/ranks / run/nodes/count / seconds / "
    "run/wire/bytes_per_second; resumed_step = 1 * run/resumed_step";

zero_status zero_study_measure(json_t *point, const zero_metrics_file *file, int64_t steps,
                               int64_t warm_up)
{
    int64_t tokens = 0, ranks = zero_point_whole(point, "ranks");
    ZERO_FORMAT_IF(!file->run || !file->final || file->n != steps,
                   "%s: expected a run of %" PRId64
                   " steps with its last line, found %" PRId64 " steps and %s",
                   file->path, steps, file->n,
                   file->final ? "a last line" : "no last line");
    ZERO_TRY(zero_expect(file->path, file->run, "run of a point"));
    ZERO_FORMAT_IF(zero_point_whole(file->run, "ranks") != ranks,
                   "%s: expected a run of %" PRId64 " ranks, found %" PRId64, file->path,
                   ranks, zero_point_whole(file->run, "ranks"));
    ZERO_FREED double *seconds = malloc(2 * (size_t)file->n * sizeof *seconds);
    double *shares = seconds + file->n;
    ZERO_TRY(zero_allocated(seconds, "%s: no memory for its steps", file->path));
    for (int64_t i = 0; i < file->n; i++) {
        json_auto_t *step = NULL;
        ZERO_TRY(zero_metrics_step_at(file, i, &step));
        ZERO_TRY(zero_json_real(file->path, step, "step_seconds", &seconds[i]));
        /* The time is null on a device, which is read after the last step. */
        ZERO_TRY(zero_expect(file->path, step, "step of a point"));
        shares[i] = seconds[i] > 0.0
                        ? zero_fact_number(step, "exposed_seconds / step_seconds")
                        : 0.0;
        tokens = zero_point_whole(step, "tokens");
    }
    zero_step_time t = zero_step_times_of(seconds, file->n, warm_up);
    double exposed = zero_step_times_of(shares, file->n, warm_up).median;
    double rate = (double)tokens / t.median, n = (double)ranks;
    /* Ranks that are bound have no more cores than that; ranks that are not share the
     * machines'. */
    double own = zero_fact_number(file->run, "cores");
    double share = zero_fact_number(file->run, "node_cores * count(hosts)") / n;
    json_t *measured = json_pack(
        "{s:s, s:{s:f, s:f, s:f, s:o, s:o, s:I}, s:I, s:f, s:f, s:f, s:o, s:f, s:{s:O, "
        "s:O}, s:O}",
        "state", "measured", "step_seconds", "median", t.median, "lower_quartile", t.lower,
        "upper_quartile", t.upper, "median_low", zero_metrics_real(t.low), "median_high",
        zero_metrics_real(t.high), "steps", t.n, "tokens", tokens, "tokens_per_rank",
        (double)tokens / n, "tokens_per_second", rate, "tokens_per_rank_and_second",
        rate / n, "exposed_share", zero_metrics_real(exposed), "cores_per_rank",
        isnan(own) || isnan(share) ? 0.0 : fmin(own, share), "nodes", "count",
        zero_fact_at(file->run, "nodes/count"), "fake",
        zero_fact_at(file->run, "nodes/fake"), "run", file->run);
    ZERO_TRY(zero_allocated(measured, "%s: no memory for a point", file->path));
    json_object_update_new(point, measured);
    json_auto_t *lines =
        json_pack("{s:O, s:O, s:f, s:f}", "run", file->run, "final", file->final, "steps",
                  (double)steps, "seconds", t.median);
    json_object_update_new(point,
                           zero_facts_pick(&(zero_scope){.node = lines}, of_the_machine));
    return ZERO_OK;
}

double zero_study_efficiency(bool is_strong, double t1, int64_t n1, double t, int64_t n)
{
    return is_strong ? t1 / t * (double)n1 / (double)n : t1 / t;
}

void zero_study_compare(json_t *study)
{
    const char *scaling = zero_get_string(study, "scaling");
    bool is_strong = scaling && zero_same_text(scaling, "strong");
    const json_t *base = NULL;
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(study, "points"), i, point)
    {
        if (zero_point_is(point, "measured")) {
            if (!base ||
                zero_point_whole(base, "stage") != zero_point_whole(point, "stage"))
                base = point;
            int64_t n1 = zero_point_whole(base, "ranks");
            /* An efficiency's interval has the ends of both medians', so it is wide. */
            static const char *const of[][3] = {
                {"efficiency", "step_seconds/median", "step_seconds/median"},
                {"efficiency_low", "step_seconds/median_low", "step_seconds/median_high"},
                {"efficiency_high", "step_seconds/median_high", "step_seconds/median_low"}};
            for (int k = 0; k < (base == point ? 1 : 3); k++) {
                double efficiency = zero_study_efficiency(
                    is_strong, zero_fact_number(base, of[k][1]), n1,
                    zero_fact_number(point, of[k][2]), zero_point_whole(point, "ranks"));
                json_object_set_new(point, of[k][0], zero_metrics_real(efficiency));
            }
            zero_put_whole(point, "efficiency_to_ranks", n1);
        }
        /* Members in the order of study.json, and only those that its state has. */
        static const char
            failed[] = "why",
            measured[] = "step_seconds; tokens; tokens_per_rank; tokens_per_second; "
                         "tokens_per_rank_and_second; efficiency; efficiency_low; "
                         "efficiency_high; efficiency_to_ranks; exposed_share; "
                         "cores_per_rank; nodes; imbalance; slowest_rank; products_share; "
                         "wire_share; inside_bytes; across_bytes; resumed_step";
        const char *const parts[] = {
            "stage; ranks; state", zero_point_is(point, "failed") ? failed : "",
            "metrics; started; load", zero_point_is(point, "measured") ? measured : "",
            "planned; simulated; run"};
        json_t *before = json_copy(point);
        zero_spec_part key;
        json_object_clear(point);
        for (int k = 0; k < ZERO_COUNT(parts); k++)
            for (const char *at = parts[k]; zero_spec_next(&at, &key);)
                json_object_set_nocheck(point, key.name, json_object_get(before, key.name));
        json_decref(before);
    }
}

/* ---- texts ---- */

zero_status zero_study_show(const json_t *study, bool has_plan, bool has_simulation,
                            FILE *out)
{
    json_auto_t *tree = json_copy((json_t *)study);
    zero_put_flag(tree, "has_plan", has_plan);
    ZERO_FAIL_IF(
        json_object_set_new(tree, "has_simulation", json_boolean(has_simulation)) != 0,
        ZERO_ERR_NOMEM, "no memory for the table of a study");
    return zero_print_form("study", "sweep", tree, zero_legible_print, out);
}

zero_status zero_study_print(const json_t *report, FILE *out)
{
    return zero_print_form("study", "text", report, zero_legible_print, out);
}

zero_status zero_study_check(const json_t *report, FILE *out)
{
    return zero_print_form("study", "checklist", report, zero_legible_print, out);
}
