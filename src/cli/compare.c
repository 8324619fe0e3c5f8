/* zero compare: the first step and key in which the metrics of two runs differ, then the
 * settings that differ. Times are measured, so they are not compared. */
#include "cli/options.h"

#include "base/fail.h"
#include "base/legible.h"
#include "base/number.h"
#include "pages/run.h"

typedef struct {
    zero_metrics_file a, b;
} pair;

/* Where two runs differ. */
typedef struct {
    int64_t step; /* 0: at the end */
    char key[64]; /* "": they do not differ */
    char a[96], b[96];
} difference;

/* Keys of a step's line that no two runs have in common. */
static const char *const measured[] = {"step_seconds", "tokens_per_second", "elapsed",
                                       "exposed_seconds", "lost_lines"};

static bool is_measured(const char *key)
{
    for (int i = 0; i < ZERO_COUNT(measured); i++)
        if (strcmp(key, measured[i]) == 0) return true;
    return false;
}

/* A value as JSON in ASCII, cut to `size` bytes. */
static void write_value(const json_t *value, char *text, size_t size)
{
    const size_t flags =
        JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17);
    char *whole = value ? json_dumps(value, flags) : NULL;
    int n = snprintf(text, size, "%s", whole ? whole : "missing");
    if (n >= (int)size) memcpy(text + size - 4, "...", 4);
    free(whole);
}

/* ---- results ---- */

static void note(const char *key, const json_t *a, const json_t *b, difference *d)
{
    snprintf(d->key, sizeof d->key, "%s", key);
    write_value(a, d->a, sizeof d->a);
    write_value(b, d->b, sizeof d->b);
}

/* The step of line i; after the last one none comes. */
static int64_t step_at(const zero_metrics_file *file, int64_t i)
{
    return i < file->n ? file->steps[i].step : INT64_MAX;
}

/* Line i of both. If they are of two steps, one run lacks the earlier one. */
static zero_status compare_step(const pair *p, int64_t i, difference *d)
{
    json_auto_t *a = NULL, *b = NULL;
    json_t *value;
    const char *key;
    const int64_t step_a = step_at(&p->a, i), step_b = step_at(&p->b, i);
    if (step_a <= step_b) ZERO_TRY(zero_metrics_step_at(&p->a, i, &a));
    if (step_b <= step_a) ZERO_TRY(zero_metrics_step_at(&p->b, i, &b));
    d->step = zero_min(step_a, step_b);
    /* The first member of a that b has not or has otherwise, then the first that only b
     * has; `d` is left alone without one. */
    json_object_foreach(a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        if (!d->key[0] && !is_measured(key) && !(other && json_equal(value, other)))
            note(key, value, other, d);
    }
    json_object_foreach(b, key, value)
    {
        if (!d->key[0] && !is_measured(key) && !json_object_get(a, key))
            note(key, NULL, value, d);
    }
    return ZERO_OK;
}

static void show_results(const pair *p, const difference *d)
{
    char digest[96];
    if (d->key[0] && d->step > 0) printf("step %" PRId64 ", ", d->step);
    if (d->key[0]) {
        printf("%s: %s | %s\n", ZERO_SHOWN(d->key), ZERO_SHOWN(d->a), ZERO_SHOWN(d->b));
        return;
    }
    write_value(json_object_get(p->a.final, "digest"), digest, sizeof digest);
    printf("equal: %" PRId64 " step%s, ", p->a.n, p->a.n == 1 ? "" : "s");
    if (p->a.final)
        printf("digest %s\n", digest);
    else
        printf("and neither run has ended\n");
}

/* ---- settings ---- */

static zero_status show_settings(const pair *p)
{
    static const char *const files[] = {"metrics", NULL}; /* the compared ones */
    const json_t *const runs[] = {p->a.run, p->b.run};
    const zero_metrics_file *without = !p->a.run ? &p->a : !p->b.run ? &p->b : NULL;
    size_t i;
    json_t *setting;
    if (without) {
        printf("settings are unknown: %s does not say what its run was\n",
               ZERO_SHOWN(without->path));
        return ZERO_OK;
    }
    json_auto_t *settings = zero_settings_compare(runs, 2, files);
    if (!settings) return zero_fail(ZERO_ERR_NOMEM, "no memory for the settings of runs");
    printf(json_array_size(settings) > 0 ? "settings that differ:\n"
                                         : "the settings are equal\n");
    json_array_foreach(settings, i, setting)
    {
        char text[2][512];
        for (size_t r = 0; r < 2; r++) {
            const json_t *value = json_array_get(json_object_get(setting, "values"), r);
            if (json_is_null(value))
                snprintf(text[r], sizeof text[r], "open");
            else
                write_value(value, text[r], sizeof text[r]);
        }
        printf("  %s: %s | %s\n",
               ZERO_SHOWN(json_string_value(json_object_get(setting, "name"))),
               ZERO_SHOWN(text[0]), ZERO_SHOWN(text[1]));
    }
    return ZERO_OK;
}

/* ---- the command ---- */

static zero_status compare(const pair *p)
{
    difference d = {.step = 0};
    for (int64_t i = 0; i < zero_max(p->a.n, p->b.n) && !d.key[0]; i++)
        ZERO_TRY(compare_step(p, i, &d));
    if (!d.key[0]) {
        const json_t *a = json_object_get(p->a.final, "digest");
        const json_t *b = json_object_get(p->b.final, "digest");
        d.step = 0;
        if ((a || b) && !(a && b && json_equal(a, b))) note("digest", a, b, &d);
    }
    printf("%s | %s\n", ZERO_SHOWN(p->a.path), ZERO_SHOWN(p->b.path));
    show_results(p, &d);
    ZERO_TRY(show_settings(p));
    printf("not compared, because they are measured: %s, %s, %s, %s, and the last line but "
           "for its digest\n",
           measured[0], measured[1], measured[2], measured[3]);
    if (!d.key[0]) return ZERO_OK;
    if (d.step == 0)
        return zero_fail(ZERO_ERR_DIFFERENT, "%.200s and %.200s differ in their digests",
                         p->a.path, p->b.path);
    return zero_fail(ZERO_ERR_DIFFERENT,
                     "%.200s and %.200s differ from step %" PRId64 " on, first in %s",
                     p->a.path, p->b.path, d.step, d.key);
}

/* As with cmp and diff, 1 means that files differ, and 2 that one cannot be read. */
static zero_status read_one(const char *path, zero_metrics_file *file)
{
    zero_status st = zero_metrics_read(file, path);
    if (st != ZERO_ERR_IO && st != ZERO_ERR_FORMAT) return st;
    return zero_fail(ZERO_ERR_INVALID, "%s", zero_last_error());
}

static zero_status run(void *options, const zero_options *given)
{
    pair p = {.a = {.path = NULL}};
    (void)options;
    zero_status st = read_one(given->operands[0], &p.a);
    if (st == ZERO_OK) st = read_one(given->operands[1], &p.b);
    if (st == ZERO_OK) st = compare(&p);
    zero_metrics_file_destroy(&p.a);
    zero_metrics_file_destroy(&p.b);
    return st;
}

const zero_command zero_command_compare = {
#include "cli/options/compare.command"
    .run = run,
};
