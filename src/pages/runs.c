/* Several runs: the settings and the figures in which they differ, and their text. */

#include "base/legible.h"
#include "pages/forms.h"
#include "pages/run.h"
#include "train/metrics.h"

/* ---- settings ---- */

static const json_t *value_of(const json_t *run, const char *key, bool is_option)
{
    const json_t *value =
        json_object_get(is_option ? json_object_get(run, "config") : run, key);
    return value && !json_is_null(value) ? value : NULL;
}

/* Adds the setting if two runs differ in it. */
static void add_setting(json_t *all, const json_t *const *runs, int n, const char *key,
                        bool is_option)
{
    json_t *values = json_array();
    bool do_differ = false;
    for (int r = 0; r < n; r++) {
        const json_t *first = value_of(runs[0], key, is_option),
                     *value = value_of(runs[r], key, is_option);
        do_differ =
            do_differ || (first && value ? !json_equal(first, value) : first || value);
        json_array_append_new(values, value ? json_incref((json_t *)value) : json_null());
    }
    if (do_differ)
        zero_put_item(all, "{s:o, s:O}", "name",
                      json_sprintf("%s%s", is_option ? "--" : "", key), "values", values);
    json_decref(values);
}

json_t *zero_settings_compare(const json_t *const *runs, int n, const char *const *files)
{
    /* Members of the first line that say how a run was made, besides its configuration. */
    static const char *const facts[] = {"version", "commit", "build",      "resumed_step",
                                        "ranks",   "nodes",  "hosts",      "cpu",
                                        "mpi",     "blas",   "arithmetic", "data"};
    json_t *all = json_array(), *seen = json_object(), *value;
    const char *key;
    for (int k = 0; files[k]; k++) json_object_set_new(seen, files[k], json_true());
    for (int r = 0; r < n; r++)
        json_object_foreach(json_object_get(runs[r], "config"), key, value)
        {
            if (json_object_get(seen, key)) continue;
            json_object_set_new(seen, key, json_true());
            add_setting(all, runs, n, key, true);
        }
    json_decref(seen);
    for (int f = 0; f < ZERO_COUNT(facts); f++) add_setting(all, runs, n, facts[f], false);
    return all;
}

static json_t *text_of(const json_t *value)
{
    if (json_is_null(value)) return json_string("open");
    if (json_is_string(value)) return json_incref((json_t *)value);
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    json_t *shown = text ? zero_metrics_text(text) : NULL;
    free(text);
    return shown;
}

json_t *zero_runs_settings(const zero_run *runs, int n)
{
    static const char *const files[] = {"metrics", "trace", "expect-digest", NULL};
    const json_t **lines = calloc((size_t)n + 1, sizeof *lines);
    if (!lines) return NULL;
    for (int r = 0; r < n; r++) lines[r] = json_object_get(runs[r].tree, "run");
    json_t *all = zero_settings_compare(lines, n, files), *setting;
    size_t i;
    json_array_foreach(all, i, setting)
    {
        json_t *values = json_object_get(setting, "values");
        for (int r = 0; r < n; r++)
            json_array_set_new(values, (size_t)r,
                               lines[r] ? text_of(json_array_get(values, (size_t)r))
                                        : json_string("unknown"));
    }
    free(lines);
    return all;
}

/* ---- text ---- */

zero_status zero_runs_print(const zero_run *runs, int n, FILE *out)
{
    if (n == 1) return zero_print_form("run", "one", runs[0].tree, zero_legible_print, out);
    json_t *all = json_array();
    for (int r = 0; r < n; r++) {
        /* "A" to "Z", then "AA", "AB"... */
        json_object_set_new(json_object_get(runs[r].tree, "more"), "letter",
                            r < 26 ? json_sprintf("%c", 'A' + r)
                                   : json_sprintf("%c%c", 'A' + r / 26 - 1, 'A' + r % 26));
        json_array_append(all, runs[r].tree);
    }
    json_t *tree =
        json_pack("{s:o, s:o}", "runs", all, "settings", zero_runs_settings(runs, n));
    zero_status st = tree ? zero_print_form("run", "several", tree, zero_legible_print, out)
                          : zero_fail(ZERO_ERR_NOMEM, "no memory for the settings of runs");
    json_decref(tree);
    return st;
}
