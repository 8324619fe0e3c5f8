/* zero report: runs and studies, read from their files, as text, CSV, JSON or a page. */
#include "cli/options.h"

#include "base/legible.h"
#include "comm/launch.h"
#include "io/file_list.h"
#include "io/tar.h"
#include "io/whole_file.h"
#include "pages/breakdown.h"
#include "pages/forms.h"
#include "pages/page.h"
#include "report/json_put.h"
#include "trace/kineto.h"
#include "zero/version.h"

typedef struct {
    const char *out, *trace, *artifact, *hta;
    bool csv, json, checklist;
} report_options;

/* Everything that was read. */
typedef struct {
    bool is_study[ZERO_OPERANDS_MOST]; /* of the operands */
    zero_run runs[ZERO_OPERANDS_MOST];
    json_t *studies[ZERO_OPERANDS_MOST];
    int n_runs, n_studies;
    zero_traced trace;
    json_t *breakdown; /* of the trace */
    bool has_trace;
} sources;

/* ---- forms ---- */

static zero_status print(const sources *s, const report_options *o, FILE *out)
{
    zero_page page = {s->runs, s->n_runs, s->studies, s->n_studies,
                      s->has_trace ? &s->trace : NULL};
    if (o->json) {
        json_t *object = zero_runs_describe(s->runs, s->n_runs), *studies = json_array();
        for (int i = 0; i < s->n_studies; i++) {
            json_t *study = json_copy(s->studies[i]);
            json_object_del(study, "more"); /* of texts and pages */
            json_array_append_new(studies, study);
        }
        bool is_whole = json_object_set_new(object, "studies", studies) == 0;
        if (s->has_trace)
            is_whole = json_object_set_new(object, "trace",
                                           zero_breakdown_describe(s->breakdown)) == 0 &&
                       is_whole;
        if (is_whole) return zero_json_print(object, JSON_INDENT(2), out);
        json_decref(object);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the report");
    }
    if (o->csv) {
        if (s->has_trace)
            zero_breakdown_print_csv(s->breakdown, out);
        else if (s->n_studies > 0)
            zero_studies_print_csv(s->studies, s->n_studies, out);
        else
            zero_runs_print_csv(s->runs, s->n_runs, out);
        return ZERO_OK;
    }
    if (o->checklist) {
        for (int i = 0; i < s->n_studies; i++) {
            if (i > 0) fputc('\n', out);
            ZERO_TRY(zero_study_check(s->studies[i], out));
        }
        return ZERO_OK;
    }
    if (o->out) return zero_page_print(&page, out);
    if (s->n_runs > 0) ZERO_TRY(zero_runs_print(s->runs, s->n_runs, out));
    for (int i = 0; i < s->n_studies; i++) {
        if (i > 0 || s->n_runs > 0) fputc('\n', out);
        ZERO_TRY(zero_study_print(s->studies[i], out));
    }
    if (!s->has_trace) return ZERO_OK;
    if (s->n_studies > 0 || s->n_runs > 0) fputc('\n', out);
    return zero_breakdown_print(s->breakdown, out);
}

/* ---- --out, --artifact ---- */

/* In memory; *text for free(), whatever the status. */
static zero_status print_to(const sources *s, const report_options *o, char **text,
                            size_t *len)
{
    FILE *memory = open_memstream(text, len);
    ZERO_FAIL_IF(!memory, ZERO_ERR_NOMEM, "no memory for the report");
    zero_status st = print(s, o, memory);
    bool is_whole = !ferror(memory);
    is_whole = fclose(memory) == 0 && is_whole;
    ZERO_TRY(st);
    return zero_allocated(is_whole, "no memory for the report");
}

/* The files of an artifact, and where they come from. */
typedef struct {
    zero_bytes tar;
    json_t *files;
} artifact;

static zero_status add(artifact *a, const char *name, const char *from, const void *data,
                       size_t len)
{
    zero_put_item(a->files, "{s:s, s:s}", "name", name, "from", from);
    return zero_tar_add(&a->tar, name, data, len);
}

static zero_status add_form(artifact *a, const sources *s, const char *name,
                            const char *about, const report_options *o)
{
    ZERO_FREED char *text = NULL;
    size_t len = 0;
    ZERO_TRY(print_to(s, o, &text, &len));
    return add(a, name, about, text, len);
}

static zero_status add_file(artifact *a, const char *name, const char *path)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes file = {0};
    ZERO_TRY(zero_bytes_read(&file, path));
    return add(a, name, ZERO_SHOWN(path), file.bytes, file.len);
}

/* Metrics of the study's points that lie beside it. */
static zero_status add_points(artifact *a, const json_t *study, int k, const char *file)
{
    const char *slash = strrchr(file, '/');
    char from[ZERO_STORAGE_FILE_PATH], name[100], point[ZERO_POINT_TEXT];
    size_t i;
    json_t *p;
    json_array_foreach(zero_fact_at(study, "more/points"), i, p)
    {
        zero_point_name(p, point);
        zero_print(from, "%.*spoints/%s.jsonl", slash ? (int)(slash - file) + 1 : 0, file,
                   point);
        zero_print(name, "data/study%d/points/%s.jsonl", k, point);
        if (zero_path_look(from) != ZERO_PATH_OF_NOTHING) ZERO_TRY(add_file(a, name, from));
    }
    return ZERO_OK;
}

static zero_status add_data(artifact *a, const sources *s, const report_options *o,
                            const zero_options *given, json_t *operands)
{
    int runs = 0, studies = 0;
    for (int i = 0; i < given->n_operands; i++) {
        char name[100], path[ZERO_STORAGE_FILE_PATH];
        const bool is_folder = zero_path_look(given->operands[i]) == ZERO_PATH_OF_DIRECTORY;
        zero_print(path, "%s%s", given->operands[i], is_folder ? "/study.json" : "");
        const char *dot = strrchr(path, '.');
        if (s->is_study[i])
            zero_print(name, "data/study%d/study.%s", ++studies,
                       dot && zero_same_text(dot, ".csv") ? "csv" : "json");
        else
            zero_print(name, "data/run%d.jsonl", ++runs);
        json_array_append_new(operands, json_string(name));
        ZERO_TRY(add_file(a, name, path));
        if (s->is_study[i]) ZERO_TRY(add_points(a, s->studies[studies - 1], studies, path));
    }
    return o->trace ? add_file(a, "data/trace.json", o->trace) : ZERO_OK;
}

static void destroy_artifact(artifact *a)
{
    zero_bytes_destroy(&a->tar);
    json_decref(a->files);
}

static zero_status write_artifact(const sources *s, const report_options *o,
                                  const zero_options *given)
{
    ZERO_AT_END(destroy_artifact) artifact a = {.files = json_array()};
    json_auto_t *operands = json_array();
    const int kinds = (s->n_runs > 0) + (s->n_studies > 0) + s->has_trace;
    ZERO_TRY(add_data(&a, s, o, given, operands));
    ZERO_TRY(add_form(&a, s, "report.html", "the page, with all figures",
                      &(report_options){.out = ""}));
    ZERO_TRY(add_form(&a, s, "report.txt", "as text", &(report_options){0}));
    if (kinds == 1)
        ZERO_TRY(add_form(&a, s, "report.csv", "as CSV", &(report_options){.csv = true}));
    if (s->n_studies > 0)
        ZERO_TRY(add_form(&a, s, "checklist.txt", "rules of Hoefler and Belli",
                          &(report_options){.checklist = true}));
    ZERO_TRY(add_form(&a, s, "report.json", "as JSON", &(report_options){.json = true}));
    ZERO_FREED char *text = NULL;
    json_t *studies = json_array(), *runs = json_array();
    for (int i = 0; i < s->n_runs; i++) json_array_append(runs, s->runs[i].tree);
    for (int i = 0; i < s->n_studies; i++)
        zero_put_item(studies, "{s:O, s:O, s:O}", "path",
                      zero_fact_at(s->studies[i], "more/path"), "scaling",
                      zero_fact_at(s->studies[i], "scaling"), "points",
                      zero_fact_at(s->studies[i], "more/points"));
    json_auto_t *tree = json_pack(
        "{s:s, s:O, s:O, s:b, s:o, s:o}", "version", ZERO_VERSION_STRING, "files", a.files,
        "operands", operands, "trace", s->has_trace, "runs", runs, "studies", studies);
    ZERO_TRY(zero_allocated(tree, "no memory for the artifact"));
    ZERO_TRY(zero_text_of_form("artifact", "readme", tree, &text));
    ZERO_TRY(zero_tar_add(&a.tar, "README.txt", text, strlen(text)));
    ZERO_TRY(zero_tar_end(&a.tar));
    ZERO_TRY(zero_whole_file_put(o->artifact, a.tar.bytes, a.tar.len));
    printf("%s: %zu bytes\n", ZERO_SHOWN(o->artifact), a.tar.len);
    return ZERO_OK;
}

/* The report is made in memory first: a file that is not whole is never there. */
static zero_status write_out(const sources *s, const report_options *o)
{
    ZERO_FREED char *text = NULL;
    size_t len = 0;
    ZERO_TRY(print_to(s, o, &text, &len));
    ZERO_TRY(zero_whole_file_put(o->out, text, len));
    printf("%s: %zu bytes\n", ZERO_SHOWN(o->out), len);
    return ZERO_OK;
}

/* ---- the command ---- */

/* Steps that both have last equally long. One is enough: a resumed run has taken some of
 * them again. */
static zero_status check_steps(const sources *s)
{
    int64_t differs = 0;
    double traced = 0.0, seconds = 0.0;
    size_t i;
    json_t *t;
    json_array_foreach(json_object_get(s->breakdown, "steps"), i, t)
    {
        const zero_run *run = &s->runs[0];
        const int64_t step = zero_get_whole(t, "step");
        const bool is_first = zero_get_whole(t, "rank") == 0;
        double own = NAN; /* that the run's line of this step says */
        for (int64_t k = 0; is_first && isnan(own) && k < run->n; k++)
            if ((int64_t)run->steps[ZERO_STEP][k] == step)
                own = run->steps[ZERO_STEP_SECONDS][k];
        if (!isfinite(own)) continue;
        traced = zero_get_number(t, "step_seconds");
        seconds = own;
        differs = step;
        /* Both files have the same clock's seconds of rank 0, one of them in whole
         * nanoseconds. */
        if (fabs(traced - seconds) <= 1e-8 + 1e-9 * seconds) return ZERO_OK;
    }
    ZERO_INVALID_IF(differs != 0,
                    "--trace %.200s is of another run than %.200s, or of steps that were "
                    "taken again: step %" PRId64
                    " of rank 0 lasts %.9f s in the one, %.9f s in the other; a trace "
                    "belongs to the first run; give it alone, or with its own run",
                    s->trace.path, zero_run_path(&s->runs[0]), differs, traced, seconds);
    return ZERO_OK;
}

/* The page draws the trace as that of the first run. Both files name their run, but
 * older ones do not, and metrics that a resumed run went on with have earlier runs'
 * steps, too. */
static zero_status check_trace(const sources *s)
{
    const zero_run *run = &s->runs[0];
    if (!s->has_trace || s->n_runs == 0) return ZERO_OK;
    int64_t ranks = zero_run_whole(run, "run/ranks"), id = zero_run_whole(run, "run/id");
    ZERO_INVALID_IF(
        ranks > 0 && s->trace.world != ranks,
        "--trace %.200s is of %d ranks, but %.200s of %" PRId64
        ": a trace belongs to the first run; give it alone, or with its own run",
        s->trace.path, s->trace.world, zero_run_path(run), ranks);
    if (s->trace.is_simulated) return ZERO_OK;
    if (s->trace.run == 0 || id == 0 || zero_run_whole(run, "run/resumed_step") > 0)
        return s->trace.is_cut ? ZERO_OK : check_steps(s);
    ZERO_INVALID_IF(
        s->trace.run != id,
        "--trace %.200s is of another run than %.200s: its `run` is %" PRId64
        ", their `id` %" PRId64
        "; a trace belongs to the first run; give it alone, or with its own run",
        s->trace.path, zero_run_path(run), s->trace.run, id);
    return ZERO_OK;
}

static void destroy(sources **taken)
{
    sources *s = *taken;
    if (!s) return;
    for (int i = 0; i < s->n_runs; i++) zero_run_destroy(&s->runs[i]);
    for (int i = 0; i < s->n_studies; i++) json_decref(s->studies[i]);
    json_decref(s->breakdown);
    zero_traced_destroy(&s->trace);
    free(s);
}

static zero_status check_written(const char *option, const char *path,
                                 const report_options *o, const zero_options *given)
{
    bool is_input = path && o->trace && zero_files_have(o->trace, path);
    for (int i = 0; i < given->n_operands && path; i++)
        is_input = is_input || zero_files_have(given->operands[i], path);
    ZERO_INVALID_IF(is_input,
                    "%s %.300s is one of the files to report on, and would be "
                    "overwritten: give another name",
                    option, path);
    return ZERO_OK;
}

static zero_status run(void *options, const zero_options *given)
{
    const report_options *o = options;
    ZERO_TRY(check_written("--out", o->out, o, given));
    ZERO_TRY(check_written("--artifact", o->artifact, o, given));
    ZERO_INVALID_IF(o->artifact && (o->out || o->csv || o->json || o->checklist),
                    "--artifact has all forms: leave --out, --csv, "
                    "--json and --checklist out");
    ZERO_AT_END(destroy) sources *s = NULL;
    ZERO_TRY(zero_new(&s, 1, "the report"));
    for (int i = 0; i < given->n_operands; i++) {
        bool is_study;
        const char *path = given->operands[i];
        ZERO_TRY(zero_study_is(path, &is_study));
        ZERO_TRY(is_study ? zero_study_read(&s->studies[s->n_studies], path)
                          : zero_run_read(&s->runs[s->n_runs], path));
        *(is_study ? &s->n_studies : &s->n_runs) += 1;
        s->is_study[i] = is_study;
    }
    if (o->trace) {
        ZERO_TRY(zero_traced_read(&s->trace, o->trace));
        s->has_trace = true;
        ZERO_TRY(zero_breakdown_of(&s->trace, &s->breakdown));
    }
    ZERO_INVALID_IF(o->csv && (s->n_runs > 0) + (s->n_studies > 0) + s->has_trace != 1,
                    "--csv: runs, studies and a --trace have other columns: found %d, "
                    "%d and %d of them; report on one kind after the other",
                    s->n_runs, s->n_studies, (int)s->has_trace);
    ZERO_INVALID_IF(o->checklist && s->n_studies == 0,
                    "--checklist is of studies: give the directory "
                    "or study.json of a zero sweep");
    ZERO_TRY(check_trace(s));
    ZERO_INVALID_IF(o->hta && !o->trace, "--hta is a --trace in another form: give one");
    if (o->hta && zero_launch_rank_hint() == 0)
        ZERO_TRY(zero_kineto_write(&s->trace, o->hta));
    if (o->artifact)
        return zero_launch_rank_hint() == 0 ? write_artifact(s, o, given) : ZERO_OK;
    if (!o->out) return print(s, o, stdout);
    return zero_launch_rank_hint() == 0 ? write_out(s, o) : ZERO_OK;
}

const zero_command zero_command_report = {
#include "cli/options/report.command"
    .run = run,
};
