/* zero compare: the first step and key in which the metrics of two runs differ, then the
 * settings that differ. Times are measured, so they are not compared. A tree says it;
 * forms/compare.txt is its text. Two step files are verify.c's. */
#include "cli/step_files.h"

#include "base/embedded.h"
#include "base/legible.h"
#include "facts/form.h"
#include "pages/run.h"
#include "report/json_put.h"

extern const zero_embedded zero_cli_forms[];

static const zero_option own_rows[] = {
#include "cli/options/compare.rows"
};

static const zero_option_table tables[] = {
    {.rows = own_rows},
    {.rows = zero_run_options, .shown = ZERO_OPTION_PLACED},
};

/* Keys of a step's line that no two runs have in common. */
static bool is_measured(const char *key)
{
    static const char *const measured[] = {"step_seconds", "tokens_per_second", "elapsed",
                                           "exposed_seconds", "lost_lines"};
    for (int i = 0; i < ZERO_COUNT(measured); i++)
        if (zero_same_text(key, measured[i])) return true;
    return false;
}

/* A value as JSON in ASCII, cut to `size` bytes. */
static json_t *text_of(const json_t *value, int size)
{
    const size_t flags =
        JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17);
    char *whole = value ? json_dumps(value, flags) : NULL;
    const char *text = whole ? whole : "missing";
    bool fits = (int)strlen(text) < size;
    json_t *cut = json_sprintf(fits ? "%.*s" : "%.*s...", size - 4 + 3 * fits, text);
    free(whole);
    return cut;
}

/* Where they differ first: what follows is not told. */
static void note(json_t *tree, const char *key, const json_t *a, const json_t *b)
{
    if (!json_object_get(tree, "key"))
        zero_put_members(tree, "{s:s, s:o, s:o}", "key", key, "x", text_of(a, 96), "y",
                         text_of(b, 96));
}

/* The step of line i; after the last one none comes. */
static int64_t step_at(const zero_metrics_file *file, int64_t i)
{
    return i < file->n ? file->steps[i].step : INT64_MAX;
}

/* Line i of both. If they are of two steps, one run lacks the earlier one. */
static zero_status compare_step(const zero_metrics_file *file_a,
                                const zero_metrics_file *file_b, int64_t i, json_t *tree)
{
    json_auto_t *a = NULL, *b = NULL;
    json_t *value;
    const char *key;
    const int64_t step_a = step_at(file_a, i), step_b = step_at(file_b, i);
    if (step_a <= step_b) ZERO_TRY(zero_metrics_step_at(file_a, i, &a));
    if (step_b <= step_a) ZERO_TRY(zero_metrics_step_at(file_b, i, &b));
    zero_put_whole(tree, "step", zero_min(step_a, step_b));
    /* The first member of a that b has not or has otherwise, then the first that only b
     * has. */
    json_object_foreach(a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        if (!is_measured(key) && !(other && json_equal(value, other)))
            note(tree, key, value, other);
    }
    json_object_foreach(b, key, value)
    {
        if (!is_measured(key) && !json_object_get(a, key)) note(tree, key, NULL, value);
    }
    return ZERO_OK;
}

/* The settings that differ, or which file has none. */
static zero_status put_settings(const zero_metrics_file *a, const zero_metrics_file *b,
                                json_t *tree)
{
    static const char *const files[] = {"metrics", NULL}; /* the compared ones */
    const json_t *const runs[] = {a->run, b->run};
    size_t i;
    json_t *setting;
    if (!a->run || !b->run) {
        json_object_set_new(tree, "without",
                            json_string_nocheck(a->run ? b->path : a->path));
        return ZERO_OK;
    }
    json_t *settings = zero_settings_compare(runs, 2, files);
    ZERO_TRY(zero_allocated(settings, "no memory for the settings of runs"));
    json_object_set_new(tree, "settings", settings);
    json_array_foreach(settings, i, setting)
    {
        for (size_t r = 0; r < 2; r++) {
            const json_t *value = json_array_get(json_object_get(setting, "values"), r);
            json_object_set_new(setting, r ? "y" : "x",
                                json_is_null(value) ? json_string("open")
                                                    : text_of(value, 512));
        }
    }
    return ZERO_OK;
}

/* As with cmp and diff, 1 means that files differ, and 2 that one cannot be read. */
static zero_status read_one(const char *path, zero_metrics_file *file)
{
    zero_status st = zero_metrics_read(file, path);
    if (st != ZERO_ERR_IO && st != ZERO_ERR_FORMAT) return st;
    return zero_fail(ZERO_ERR_INVALID, "%s", zero_last_error());
}

/* Drops lines of steps that the other run left out by --metrics-every. */
static void drop_thinned(zero_metrics_file *file, const zero_metrics_file *other)
{
    const json_t *config = json_object_get(other->run, "config");
    int64_t n = 0;
    if (zero_get_whole(config, "metrics-every") <= 1) return;
    for (int64_t i = 0, k = 0; i < file->n; i++) {
        while (step_at(other, k) < file->steps[i].step) k++;
        bool is_between = k > 0 && k < other->n && step_at(other, k) > file->steps[i].step;
        if (!is_between) file->steps[n++] = file->steps[i];
    }
    file->n = n;
}

/* A safetensors file: a length, then JSON; lines of metrics begin with JSON. */
static bool is_step_file(const char *path)
{
    ZERO_AT_END(zero_file_close) zero_file file = {.fd = -1};
    char start[9];
    return zero_file_open(path, &file) == ZERO_OK && file.bytes > sizeof start &&
           zero_file_read(&file, 0, start, sizeof start) == ZERO_OK && start[0] != '{' &&
           start[8] == '{';
}

static zero_status check(ZERO_UNUSED void *options, const zero_options *given)
{
    return zero_step_files_check(given);
}

static zero_status run(void *options, const zero_options *given)
{
    const zero_verify_options *o = options;
    ZERO_AT_END(zero_metrics_file_destroy) zero_metrics_file a = {0};
    ZERO_AT_END(zero_metrics_file_destroy) zero_metrics_file b = {0};
    if (is_step_file(given->operands[0])) return zero_step_files_run(o, given);
    for (const zero_option *row = zero_run_options; row->name; row++)
        ZERO_INVALID_IF(zero_options_is_set(given, row->name),
                        "--%s: %.200s is not a step file, so nothing is computed",
                        row->name, given->operands[0]);
    ZERO_TRY(read_one(given->operands[0], &a));
    ZERO_TRY(read_one(given->operands[1], &b));
    drop_thinned(&a, &b);
    drop_thinned(&b, &a);
    json_auto_t *tree = json_pack("{s:o, s:o, s:I}", "a", json_string_nocheck(a.path), "b",
                                  json_string_nocheck(b.path), "n", a.n);
    for (int64_t i = 0; i < zero_max(a.n, b.n) && !json_object_get(tree, "key"); i++)
        ZERO_TRY(compare_step(&a, &b, i, tree));
    const json_t *own = json_object_get(a.final, "digest"),
                 *other = json_object_get(b.final, "digest");
    if (!json_object_get(tree, "key")) {
        zero_put_whole(tree, "step", 0); /* at the end */
        if ((own || other) && !(own && other && json_equal(own, other)))
            note(tree, "digest", own, other);
        if (own) json_object_set_new(tree, "digest", text_of(own, 96));
    }
    ZERO_TRY(put_settings(&a, &b, tree));
    ZERO_TRY(o->json ? zero_json_print(json_incref(tree), JSON_INDENT(2), stdout)
                     : zero_form_print(zero_embedded_text(zero_cli_forms, "compare"),
                                       "compare", tree, zero_legible_print, stdout));
    const char *key = zero_get_string(tree, "key");
    const int64_t step = zero_get_whole(tree, "step");
    if (!key) return ZERO_OK;
    ZERO_FAIL_IF(step == 0, ZERO_ERR_DIFFERENT, "%.200s and %.200s differ in their digests",
                 a.path, b.path);
    return zero_fail(ZERO_ERR_DIFFERENT,
                     "%.200s and %.200s differ from step %" PRId64 " on, first in %s",
                     a.path, b.path, step, key);
}

const zero_command zero_command_compare = {
#include "cli/options/compare.command"
    .tables = tables,
    .n_tables = ZERO_COUNT(tables),
    .size = sizeof(zero_verify_options),
    .check = check,
    .run = run,
};
