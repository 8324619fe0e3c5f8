#include "cli/sweep.h"

#include "cli/build.h"
#include "cli/run_options.h"
#include "facts/facts.h"
#include "io/json_input.h"
#include "io/whole_file.h"
#include "report/simulation_report.h"
#include "train/metrics.h"
#include "zero/version.h"

#define JSON_NAME   "study.json"
#define CSV_NAME    "study.csv"
#define POINTS_NAME "points"

void zero_sweep_study_path(const zero_sweep_study *study, const json_t *point,
                           const char *ending, char path[ZERO_STORAGE_FILE_PATH])
{
    char name[ZERO_POINT_TEXT + 8], own[ZERO_POINT_TEXT];
    zero_print(name, "%s%s", zero_point_name(point, own), ending);
    zero_storage_path(&study->points, name, path);
}

/* ---- options ---- */

/* The options of a point's run that differ from their defaults, as its metrics will have
 * them but for the metrics' own name. */
static zero_status describe_options(const zero_sweep_options *o, int stage, json_t **chosen)
{
    ZERO_AT_END(zero_words_destroy) zero_words words = {0};
    zero_config config;
    zero_options given;
    ZERO_TRY(zero_sweep_point_words(o, stage, &words));
    ZERO_TRY(
        zero_options_read(&zero_command_train, (int)words.n, words.words, &config, &given));
    *chosen = zero_run_options_chosen(&given, &config);
    zero_options_destroy(&given);
    return zero_allocated(*chosen, "no memory for the options");
}

/* Adds the rows of this table that are about models of time and have a value, as a user
 * would write them. */
static void add_rates(json_t *machine, const zero_option *rows, const void *from)
{
    static const char *const names[] = {"network", "node-network",    "machine",
                                        "disk",    "flops",           "adapter",
                                        "poll",    "memory-bandwidth"};
    char value[ZERO_OPTION_TEXT_BYTES];
    for (const zero_option *row = rows; row->name; row++)
        for (int i = 0; i < ZERO_COUNT(names); i++) {
            const char *text = zero_option_value(row, from, value);
            if (text && zero_same_text(names[i], row->name))
                zero_put_string(machine, row->name, text);
        }
}

static zero_status describe(zero_sweep_study *s, const zero_sweep_options *o)
{
    json_t *options, *machine = NULL;
    ZERO_TRY(describe_options(o, o->stages[0], &options));
    json_object_del(options, "stage");
    if (zero_sweep_has_plan(o)) {
        machine = json_object();
        add_rates(machine, zero_job_rows, &o->job);
        add_rates(machine, zero_sweep_tables[0].rows, o);
    }
    s->tree = json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "study",
                        ZERO_STUDY_FORMAT, "version", zero_version(), "commit",
                        zero_build_commit(), "scaling", o->strong ? "strong" : "weak",
                        "steps", o->steps, "warm_up", o->warm_up, "launch",
                        o->launch ? zero_metrics_text(o->launch) : json_null(), "options",
                        options, "machine", machine ? machine : json_null(), "points",
                        zero_study_points(o->stages, o->n_stages, o->ranks, o->n_ranks));
    return s->tree ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for the study");
}

/* ---- models of time ---- */

/* The point's job, as it ran: shape, collectives and nodes are those of its metrics,
 * whatever its options left open. */
static zero_status describe_job(const zero_sweep_options *o, const json_t *point,
                                zero_plan_request *request)
{
    zero_plan_request r = o->request;
    zero_config *c = &r.config;
    const json_t *run = json_object_get(point, "run"), *model;
    const char *where = "the first line of its metrics";
    r.n_ranks = (int)zero_point_whole(point, "ranks");
    c->plan.stage = (int)zero_point_whole(point, "stage");
    c->init_from = NULL; /* it decides nothing but the shape */
    c->fake_nodes = (int)zero_fact_number(point, "nodes/count");
    if (json_object_get(run, "wire"))
        c->plan.message = (int64_t)zero_fact_number(run, "wire/message");
    ZERO_TRY(zero_json_object(where, run, "model", &model));
    ZERO_TRY(zero_shape_read(where, model, false, &c->base));
    ZERO_TRY(zero_json_text(where, run, "collectives", &c->collectives));
    *request = r;
    return ZERO_OK;
}

/* Seconds of a step, and the share of them that waits for the network. */
static json_t *model(double step, double waits)
{
    return json_pack("{s:f, s:f}", "step_seconds", step, "exposed_share", waits / step);
}

static zero_status plan(const zero_sweep_options *options, const json_t *point,
                        json_t **planned)
{
    zero_plan_request request;
    ZERO_AT_END(zero_plan_report_destroy) zero_plan_report report = {0};
    ZERO_TRY(describe_job(options, point, &request));
    ZERO_TRY(zero_plan_report_make(&report, &request));
    const zero_plan_time *time = &report.stages[0].time;
    if (report.request.has_time) *planned = model(time->step, time->exposed);
    return ZERO_OK;
}

/* In a run a rank that waits for data and one that waits for a neighbour look alike. */
static zero_status simulate(const zero_sweep_options *options, const json_t *point,
                            json_t **simulated)
{
    zero_simulation_request request = {.input = options->simulation};
    ZERO_AT_END(zero_simulation_report_destroy) zero_simulation_report report = {0};
    ZERO_TRY(describe_job(options, point, &request.plan));
    ZERO_TRY(zero_simulation_report_make(&report, &request));
    const zero_simulated *s = &report.results[0];
    *simulated = model(s->step, s->mean.exposed + s->mean.waiting);
    return ZERO_OK;
}

/* What a model of time says about a point that is measured. A time that it refuses stays
 * unknown, with a warning on stderr: it must not cost a measurement. */
static void put_model(json_t *point, const char *key, zero_status st, json_t *model)
{
    char words[ZERO_POINT_TEXT];
    if (st != ZERO_OK)
        fprintf(stderr, "zero: warning: %s has no %s time: %s\n",
                zero_point_words(point, words), key, zero_last_error());
    json_object_set_new(point, key, model ? model : json_null());
}

/* ---- points that are measured ---- */

zero_status zero_sweep_study_measure(const zero_sweep_study *study,
                                     const zero_sweep_options *options, json_t *point,
                                     int64_t *steps)
{
    char path[ZERO_STORAGE_FILE_PATH];
    ZERO_AT_END(zero_metrics_file_destroy) zero_metrics_file file = {0};
    json_t *planned = NULL, *simulated = NULL;
    zero_sweep_study_path(study, point, ".jsonl", path);
    *steps = 0;
    ZERO_TRY(zero_metrics_read(&file, path));
    *steps = file.n;
    /* ZERO_ERR_FORMAT unless the run had the options of this point. */
    json_auto_t *wanted = NULL,
                *found = json_deep_copy(json_object_get(file.run, "options"));
    ZERO_TRY(describe_options(options, (int)zero_point_whole(point, "stage"), &wanted));
    json_object_del(found, "metrics");
    ZERO_FORMAT_IF(!found || !json_equal(found, wanted), "%s: the run had other options",
                   file.path);
    ZERO_TRY(zero_study_measure(point, &file, options->steps, options->warm_up));
    zero_status made =
        zero_sweep_has_plan(options) ? plan(options, point, &planned) : ZERO_OK;
    put_model(point, "planned", made, planned);
    made =
        zero_sweep_has_simulation(options) ? simulate(options, point, &simulated) : ZERO_OK;
    put_model(point, "simulated", made, simulated);
    return ZERO_OK;
}

/* ---- another study ---- */

#define DIFFERENCES 512
#define AS_WRITTEN  (JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) /* 0.1 as 0.1 */

/* Appends "--name: before | now" if the values differ; a missing one is the default. */
static void note_difference(char text[DIFFERENCES], const char *name, const json_t *before,
                            const json_t *now)
{
    size_t used = strlen(text);
    char *a = before ? json_dumps(before, AS_WRITTEN) : NULL;
    char *b = now ? json_dumps(now, AS_WRITTEN) : NULL;
    bool differ = before && now ? !json_equal(before, now) : before || now;
    if (differ)
        snprintf(text + used, DIFFERENCES - used, "%s--%s: %s | %s", used > 0 ? ", " : "",
                 name, a ? a : "default", b ? b : "default");
    free(a);
    free(b);
}

static zero_status compare_settings(const zero_sweep_study *s)
{
    char text[DIFFERENCES] = "";
    note_difference(text, "weak or --strong", json_object_get(s->before, "scaling"),
                    json_object_get(s->tree, "scaling"));
    note_difference(text, "launch", json_object_get(s->before, "launch"),
                    json_object_get(s->tree, "launch"));
    const json_t *before = json_object_get(s->before, "options");
    const json_t *now = json_object_get(s->tree, "options");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)before, key, value)
        note_difference(text, key, value, json_object_get(now, key));
    json_object_foreach((json_t *)now, key, value)
    {
        if (!json_object_get(before, key)) note_difference(text, key, NULL, value);
    }
    ZERO_INVALID_IF(text[0],
                    "%s holds a study with other settings (there | here): %s; give them "
                    "as there, or another --out",
                    s->dir.path, text);
    return ZERO_OK;
}

/* ---- the directory ---- */

static zero_status refuse_names(void *arg, const char *name)
{
    const zero_storage_dir *dir = arg;
    if (name[0] == '.') return ZERO_OK; /* a lock, or what a crash left */
    return zero_fail(ZERO_ERR_INVALID,
                     "%s is not a study: it has no " JSON_NAME
                     ", but %.100s; give --out another directory",
                     dir->path, name);
}

static zero_status read_before(zero_sweep_study *s)
{
    char path[ZERO_STORAGE_FILE_PATH];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    int64_t format;
    if (!zero_storage_has(&s->dir, JSON_NAME))
        return zero_storage_list(&s->dir, refuse_names, &s->dir);
    zero_storage_path(&s->dir, JSON_NAME, path);
    ZERO_TRY(zero_bytes_read(&text, path));
    ZERO_TRY(zero_json_parse(path, text.bytes, text.len, &s->before));
    return zero_json_whole(path, s->before, "study", ZERO_STUDY_FORMAT, ZERO_STUDY_FORMAT,
                           &format);
}

static zero_status take_lock(zero_sweep_study *s)
{
    zero_lock lock;
    zero_listener listener = zero_notes_listener();
    char holder[ZERO_STORAGE_HOLDER_TEXT];
    ZERO_TRY(zero_lock_take(s->dir.fd, s->dir.path, &lock));
    if (lock == ZERO_LOCK_NONE)
        zero_listener_tell(&listener,
                           "%s: its file system has no locks, so nothing keeps another "
                           "sweep from working on this study at the same time",
                           s->dir.path);
    if (lock != ZERO_LOCK_BUSY) return zero_storage_sign(&s->dir);
    zero_storage_holder(&s->dir, holder);
    return zero_fail(ZERO_ERR_ENV, "%s: %s works on this study; wait for its end",
                     s->dir.path, holder);
}

static zero_status open_study(zero_sweep_study *s, const zero_sweep_options *o)
{
    ZERO_TRY(describe(s, o));
    ZERO_TRY(zero_storage_check_length(o->out, ZERO_STORAGE_PATH - sizeof POINTS_NAME - 2));
    ZERO_TRY(zero_storage_open_or_make_public(o->out, &s->dir));
    ZERO_TRY(take_lock(s));
    ZERO_TRY(read_before(s));
    if (zero_study_count(s->before, "measured") > 0) {
        ZERO_TRY(compare_settings(s));
        /* A study grows, but loses no measurements. */
        size_t i;
        json_t *point;
        json_array_foreach(json_object_get(s->before, "points"), i, point)
        {
            char words[ZERO_POINT_TEXT];
            ZERO_INVALID_IF(
                !zero_study_find(s->tree, zero_point_whole(point, "stage"),
                                 zero_point_whole(point, "ranks")),
                "%s has a point of %s, which --stage and --ranks leave out: name all "
                "of its points, and new ones if you like, or give another --out",
                s->dir.path, zero_point_words(point, words));
        }
    }
    /* From here on the directory is known as a study, whatever ends us. */
    if (!s->before) ZERO_TRY(zero_sweep_study_write(s));
    if (!zero_storage_has(&s->dir, POINTS_NAME))
        ZERO_TRY(zero_storage_make_public(&s->dir, POINTS_NAME, &s->points));
    else
        ZERO_TRY(zero_storage_enter(&s->dir, POINTS_NAME, &s->points));
    s->points.is_public = true;
    /* Links there are not followed, but another user may still replace what was
     * measured. */
    zero_listener listener = zero_notes_listener();
    if (!zero_storage_is_own(&s->dir))
        zero_listener_tell(&listener,
                           "%s belongs to another user, who can change what is in it",
                           s->dir.path);
    /* The point's measurement, and when and under which load it was started last. */
    static const char *const kept[] = {"started", "load"};
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(s->tree, "points"), i, point)
    {
        int64_t steps;
        const json_t *before = zero_study_find(s->before, zero_point_whole(point, "stage"),
                                               zero_point_whole(point, "ranks"));
        for (int k = 0; k < 2; k++)
            if (json_object_get(before, kept[k]))
                json_object_set(point, kept[k], json_object_get(before, kept[k]));
        zero_status st = zero_sweep_study_measure(s, o, point, &steps);
        if (st != ZERO_OK && st != ZERO_ERR_FORMAT && st != ZERO_ERR_IO) return st;
    }
    zero_study_compare(s->tree);
    return ZERO_OK;
}

zero_status zero_sweep_study_open(zero_sweep_study *study,
                                  const zero_sweep_options *options)
{
    ZERO_AT_END(zero_sweep_study_close) zero_sweep_study s = {.before = NULL};
    ZERO_TRY(open_study(&s, options));
    ZERO_GIVE(study, s);
    return ZERO_OK;
}

void zero_sweep_study_close(zero_sweep_study *study)
{
    json_decref(study->before);
    json_decref(study->tree);
    zero_storage_close(&study->points);
    zero_storage_close(&study->dir);
    *study = (zero_sweep_study){.before = NULL};
}

/* ---- its files ---- */

static zero_status replace(const zero_sweep_study *s, const char *name, const char *text)
{
    char path[ZERO_STORAGE_FILE_PATH];
    ZERO_FAIL_IF(!text, ZERO_ERR_NOMEM, "no memory for %s", name);
    zero_storage_path(&s->dir, name, path);
    return zero_whole_file_put(path, text, strlen(text));
}

zero_status zero_sweep_study_write(zero_sweep_study *study)
{
    char *csv = NULL;
    size_t size;
    zero_study_compare(study->tree);
    char *json = json_dumps(study->tree, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    FILE *out = open_memstream(&csv, &size);
    if (out) zero_study_print_csv(study->tree, out);
    if (out) fclose(out);
    zero_status st = replace(study, CSV_NAME, csv);
    if (st == ZERO_OK) st = replace(study, JSON_NAME, json);
    free(csv);
    free(json);
    return st;
}
