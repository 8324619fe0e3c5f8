#include "pages/run.h"

#include "base/legible.h"
#include "pages/forms.h"
#include "pages/page_kind.h"
#include "pages/run_check.h"
#include "train/metrics.h"

static const char *const keys[ZERO_STEP_COLUMNS] = {"step",
                                                    "loss",
                                                    "val_loss",
                                                    "lr",
                                                    "grad_norm",
                                                    "loss_scale",
                                                    "tokens",
                                                    "step_seconds",
                                                    "exposed_seconds",
                                                    "tokens_per_second",
                                                    "elapsed",
                                                    "skipped"};

int64_t zero_run_whole(const zero_run *run, const char *path)
{
    return json_integer_value(zero_fact_at(run->tree, path));
}

const char *zero_run_path(const zero_run *run)
{
    return json_string_value(zero_fact_at(run->tree, "more/path"));
}

/* ---- the steps ---- */

/* The step of the last validation loss, which may be null; 0: none. */
static zero_status read_steps(zero_run *run, const zero_metrics_file *file,
                              int64_t *val_step)
{
    for (int c = 0; c < ZERO_STEP_COLUMNS; c++) {
        run->steps[c] = malloc((size_t)file->n * sizeof *run->steps[c]);
        ZERO_FAIL_IF(!run->steps[c], ZERO_ERR_NOMEM,
                     "%.500s: no memory for %" PRId64 " steps", file->path, file->n);
    }
    *val_step = 0;
    for (int64_t i = 0; i < file->n; i++) {
        char where[600];
        json_t *line;
        zero_print(where, "%.500s, line %" PRId64, file->path, file->steps[i].line);
        ZERO_TRY(zero_metrics_step_at(file, i, &line));
        zero_status st = zero_run_check_step(where, line);
        for (int c = 0; c < ZERO_STEP_COLUMNS && st == ZERO_OK; c++) {
            const json_t *value = json_object_get(line, keys[c]);
            run->steps[c][i] = json_is_number(value) ? json_number_value(value) : NAN;
        }
        run->steps[ZERO_STEP_SKIPPED][i] = json_is_true(json_object_get(line, "skipped"));
        if (json_object_get(line, "val_loss")) *val_step = file->steps[i].step;
        json_decref(line);
        ZERO_TRY(st);
        run->n++;
    }
    return ZERO_OK;
}

/* The median of a column without the first steps, as in the run's own summary; of a
 * short run all count. Numbers that are unknown do not. `room` is for all steps. */
static zero_step_time median_of(const zero_run *run, zero_step_column column, double *room)
{
    const double *steps = run->steps[ZERO_STEP];
    int64_t first = 0, n = 0; /* --metrics-every leaves lines out */
    while (first < run->n && steps[first] < steps[0] + ZERO_STEP_TIMES_FIRST) first++;
    if (first == run->n) first = 0;
    for (int64_t i = first; i < run->n; i++)
        if (isfinite(run->steps[column][i])) room[n++] = run->steps[column][i];
    if (n == 0) return (zero_step_time){.median = NAN, .lower = NAN, .upper = NAN};
    zero_step_time time = zero_step_times_of(room, n, 0);
    time.first = first;
    return time;
}

/* ---- figures ---- */

#define OF_STEPS NULL /* the number is computed from the steps */
#define DATA     "collective == \"control\" ? 0 : "
#define SEVERAL  "run/ranks == 1 ? 0 / 0 : " /* one rank sends nothing */
#define PEAK \
    "final/memory/measured_peak_bytes > 0 ? final/memory/measured_peak_bytes : 0 / 0"

/* Expressions over the tree, of all ranks, and of rank 0 where the file has no seconds
 * by rank: an older version's, or of a run that has not ended. */
static const struct {
    const char *key, *name, *unit, *of_ranks, *of_rank_0, *definition;
} figures[] = {
    {"loss", "loss", "number", OF_STEPS, OF_STEPS, "nats per token, of the last step"},
    {"val_loss", "validation loss", "number", OF_STEPS, OF_STEPS,
     "nats per token, the last that was measured"},
    {"tokens_per_second", "tokens per second", "number", OF_STEPS, OF_STEPS,
     "median of the steps without the first ones, all ranks together"},
    {"step_seconds", "step", "seconds", OF_STEPS, OF_STEPS, "median of the same steps"},
    {"peak_bytes", "memory", "bytes", PEAK, PEAK,
     "bytes of rank 0 at the peak of the run, measured; planned before step 1"},
    {"waited", "waited for others", "share",
     "final/rank_seconds/exposed/mean / final/rank_seconds/step/mean", "more/exposed",
     "share of the step in which ranks wait for collectives on data"},
    {"compute", "compute", "share",
     "final/rank_seconds/compute/mean / final/rank_seconds/step/mean",
     "sum(profile, unit == \"\" && (op == \"FORWARD\" || op == \"RECOMPUTE\" || op == "
     "\"BACKWARD\" || op == \"ROUND\" || op == \"ACCUMULATE\" || op == \"NORM\" || op == "
     "\"UPDATE\") ? seconds - exchange_seconds : 0) / sum(profile, unit == \"\" ? seconds "
     ": 0)",
     "arithmetic of units, gradients, norms and updates, without polls of collectives; "
     "share of the step"},
    {"exposed", "exposed", "share",
     "final/rank_seconds/exposed/mean / final/rank_seconds/step/mean", "more/exposed",
     "waits for collectives on data that computing did not hide; share of the step"},
    {"imbalance", "imbalance", "share",
     "final/rank_seconds/compute/most / final/rank_seconds/compute/mean - 1", "none",
     "most / mean - 1 of the ranks' seconds of arithmetic"},
    {"overlap", "overlap", "share",
     SEVERAL "1 - final/rank_seconds/awaited/mean / final/rank_seconds/in_flight/mean",
     SEVERAL "1 - sum(communication, " DATA "exposed_seconds) / sum(communication, " DATA
             "seconds)",
     "share of the time that collectives on data are in flight in which a rank does "
     "something else than wait for them; with evaluations and samples"},
};
enum { FIGURES = ZERO_COUNT(figures) };

/* Adds "figures", in order of --json, and "more/rows", each with its
 * words. */
static zero_status add_figures(zero_run *run, int64_t val_step)
{
    json_t *all = json_object(), *rows = json_array();
    json_t *tree = run->tree, *more = json_object_get(tree, "more");
    ZERO_FREED double *room = malloc((size_t)run->n * sizeof *room);
    double exposed = 0.0, seconds = 0.0;
    ZERO_FAIL_IF(!room, ZERO_ERR_NOMEM, "no memory for %" PRId64 " steps of a run", run->n);
    double rate = median_of(run, ZERO_STEP_RATE, room).median;
    zero_step_time time = median_of(run, ZERO_STEP_SECONDS, room);
    int64_t val_at = -1;
    for (int64_t i = 0; i < run->n; i++) {
        double step = run->steps[ZERO_STEP_SECONDS][i],
               own = run->steps[ZERO_STEP_EXPOSED][i];
        if ((int64_t)run->steps[ZERO_STEP][i] == val_step) val_at = i;
        if (!isfinite(own) || !isfinite(step)) continue;
        exposed += own;
        seconds += step;
    }
    json_object_set_new(more, "exposed", zero_metrics_real(exposed / seconds));
    const double of_steps[] = {run->steps[ZERO_STEP_LOSS][run->n - 1],
                               val_at < 0 ? NAN : run->steps[ZERO_STEP_VAL_LOSS][val_at],
                               rate, time.median};
    bool of_all_ranks = zero_fact_at(tree, "final/rank_seconds") != NULL;
    for (int i = 0; i < FIGURES; i++) {
        const char *key = figures[i].key,
                   *way = of_all_ranks ? figures[i].of_ranks : figures[i].of_rank_0;
        double value = way ? zero_fact_number(tree, way) : of_steps[i];
        json_object_set_new(all, key, zero_metrics_real(value));
        zero_put_item(rows, "{s:s, s:s, s:o, s:s, s:s}", "key", key, "name",
                      figures[i].name, "value", zero_metrics_real(value), "unit",
                      figures[i].unit, "definition", figures[i].definition);
    }
    zero_put_members(all, "{s:I, s:I, s:o, s:o, s:I, s:I, s:b}", "step",
                     (json_int_t)run->steps[ZERO_STEP][run->n - 1], "val_step", val_step,
                     "step_seconds_lower_quartile", zero_metrics_real(time.lower),
                     "step_seconds_upper_quartile", zero_metrics_real(time.upper),
                     "steps_that_count", time.n, "planned_peak_bytes",
                     zero_run_whole(run, "final/memory/planned_peak_bytes"), "of_all_ranks",
                     of_all_ranks);
    json_object_set_new(tree, "figures", all);
    json_object_set_new(more, "rows", rows);
    zero_put_whole(more, "left_out", time.first);
    return ZERO_OK;
}

/* ---- facts of texts and pages ---- */

static void add_table(json_t *tables, const char *title, json_t *rows)
{
    zero_put_item(tables, "{s:s, s:o}", "title", title, "rows", rows);
}

/* Tables of planned and measured bytes: of memory, of a device's host, of a scratch
 * file. */
static json_t *tables_of(const json_t *tree)
{
    static const char spec[] = "name = class; planned = planned_bytes; measured = "
                               "measured_bytes; shown? = planned_bytes || measured_bytes";
    static const char *const ways[] = {
        "name; planned = planned_bytes_read; measured = bytes_read; shown? = "
        "planned_bytes_read || bytes_read || planned_bytes_written || bytes_written",
        "name; planned = planned_bytes_written; measured = bytes_written; shown? = "
        "planned_bytes_read || bytes_read || planned_bytes_written || bytes_written"};
    const zero_scope memory = {.node = zero_fact_at(tree, "final/memory")};
    json_t *all = json_array(), *moved, *file = json_array(),
           *rows = zero_facts_each(tree, "memory", spec),
           *host = zero_facts_each(tree, "host_memory", spec);
    bool has_host = json_array_size(host) > 0;
    size_t i;
    json_array_append_new(
        rows, zero_facts_pick(&memory, "name = \"peak\"; planned = planned_peak_bytes; "
                                       "measured = measured_peak_bytes; shown? = 1"));
    json_array_append_new(
        host,
        zero_facts_pick(&memory, "name = \"peak\"; planned = host_planned_peak_bytes; "
                                 "measured = host_measured_peak_bytes; shown? = 1"));
    add_table(all, has_host ? "device of rank 0, bytes" : "memory of rank 0, bytes", rows);
    if (has_host) add_table(all, "its host, bytes", host);
    if (!has_host) json_decref(host);
    json_array_foreach(json_object_get(tree, "file"), i, moved)
    {
        const char *class = zero_get_string(moved, "class");
        for (int w = 0; w < 2; w++) {
            char name[40];
            zero_print(name, w ? "%.17s written" : "%.17s read", class ? class : "");
            json_array_append_new(file,
                                  zero_run_pick(moved, ways[w], "name", name, "", ""));
        }
    }
    if (json_array_size(file) > 0) add_table(all, "scratch file, bytes", file);
    if (json_array_size(file) == 0) json_decref(file);
    return all;
}

static void add_more(const zero_run *run, const zero_metrics_file *file)
{
    json_t *tree = run->tree, *more = json_object_get(tree, "more"), *row;
    const double *steps = run->steps[ZERO_STEP];
    int64_t undefined = 0, first = 0, skipped = 0;
    size_t i;
    for (int64_t k = run->n - 1; k >= 0; k--) {
        skipped += run->steps[ZERO_STEP_SKIPPED][k] != 0.0;
        if (isfinite(run->steps[ZERO_STEP_LOSS][k])) continue;
        undefined++;
        first = (int64_t)steps[k];
    }
    zero_put_members(more, "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "path",
                     ZERO_SHOWN(file->path), "steps", run->n, "first", (json_int_t)steps[0],
                     "last", (json_int_t)steps[run->n - 1], "undefined", undefined,
                     "undefined_at", first, "skipped", skipped, "n_runs", file->n_runs);
    const char *path = zero_get_string(more, "path"),
               *slash = path ? strrchr(path, '/') : NULL;
    zero_put_string(more, "name", slash && slash[1] ? slash + 1 : path);
    json_t *program = zero_run_program(zero_fact_at(tree, "run/schedule"));
    if (program) json_object_set_new(more, "program", program);
    if (!file->final) return;
    json_object_set_new(more, "digest",
                        json_sprintf("%.8s...", zero_get_string(file->final, "digest")));
    json_object_set_new(more, "ledgers", tables_of(tree));
    json_t *profile = json_deep_copy(json_object_get(tree, "profile"));
    json_array_foreach(profile, i, row)
    {
        const char *op = zero_get_string(row, "op");
        zero_put_string(row, "kind", zero_kind_class(zero_kind_of(op)));
    }
    json_object_set_new(more, "profile", profile);
}

/* ---- reading ---- */

static zero_status make(zero_run *made, const zero_metrics_file *file)
{
    ZERO_AT_END(zero_run_destroy) zero_run new = {.n = 0};
    zero_run *run = &new;
    int64_t val_step = 0;
    const json_t *final = file->final;
    ZERO_TRY(zero_run_check(file));
    ZERO_TRY(read_steps(run, file, &val_step));
    json_t *tree = run->tree =
        json_pack("{s:o, s:b, s:b, s:I, s:n, s:n, s:n, s:O*, s:O*, s:{}}", "path",
                  zero_metrics_text(file->path), "ended", final != NULL, "cut", file->cut,
                  "lost_lines", file->lost_lines, "notes", "figures", "steps", "run",
                  file->run, "final", final, "more");
    ZERO_TRY(zero_allocated(tree, "%.500s: no memory for it", file->path));
    if (final) zero_run_add_ledgers(tree);
    add_more(run, file);
    ZERO_TRY(add_figures(run, val_step));
    /* Sentences about what a file has not: a report without them would pass for that of
     * a whole run. */
    ZERO_FREED char *text = NULL;
    ZERO_TRY(zero_text_of_form("run", "notes", tree, &text));
    json_t *notes = json_array(), *marked = json_array();
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        json_array_append_new(notes, json_string(line));
        /* On a page the words up to a colon stand out. */
        char *colon = strstr(line, ": ");
        if (*line >= 'a' && *line <= 'z') *line -= 'a' - 'A';
        int strong = colon ? (int)(colon - line) + 1 : 0;
        zero_put_item(marked, "{s:s%, s:s}", "strong", line, strong, "text",
                      colon ? colon + 1 : line);
    }
    json_object_set_new(tree, "notes", notes);
    json_object_set_new(json_object_get(tree, "more"), "notes", marked);
    ZERO_GIVE(made, new);
    return ZERO_OK;
}

zero_status zero_run_read(zero_run *run, const char *path)
{
    ZERO_AT_END(zero_metrics_file_destroy) zero_metrics_file file = {.path = path};
    ZERO_TRY(zero_metrics_read(&file, path));
    return make(run, &file);
}

zero_status zero_run_parse(zero_run *run, const char *path, const void *text, size_t len)
{
    ZERO_AT_END(zero_metrics_file_destroy) zero_metrics_file file = {.path = path};
    ZERO_TRY(zero_metrics_parse(&file, path, text, len));
    return make(run, &file);
}

void zero_run_destroy(zero_run *run)
{
    for (int c = 0; c < ZERO_STEP_COLUMNS; c++) free(run->steps[c]);
    json_decref(run->tree);
    *run = (zero_run){0};
}

/* ---- JSON and CSV ---- */

json_t *zero_runs_describe(const zero_run *runs, int n)
{
    json_t *all = json_array();
    for (int r = 0; r < n; r++) {
        json_t *steps = json_object(), *skipped = json_array();
        const zero_run *run = &runs[r];
        for (int c = 0; c < ZERO_STEP_SKIPPED; c++) {
            json_t *list = json_array();
            for (int64_t i = 0; i < run->n; i++) {
                double value = run->steps[c][i];
                json_t *step = json_integer((json_int_t)run->steps[ZERO_STEP][i]);
                if (c == ZERO_STEP && run->steps[ZERO_STEP_SKIPPED][i] != 0.0)
                    json_array_append(skipped, step);
                json_array_append_new(list, c == ZERO_STEP ? json_incref(step)
                                                           : zero_metrics_real(value));
                json_decref(step);
            }
            json_object_set_new(steps, keys[c], list);
            if (c == ZERO_STEP)
                json_object_set_new(steps, keys[ZERO_STEP_SKIPPED], skipped);
        }
        json_object_set_new(run->tree, "steps", steps);
        json_object_del(run->tree, "more");
        json_array_append(all, run->tree);
    }
    return json_pack("{s:o, s:o}", "runs", all, "settings", zero_runs_settings(runs, n));
}

void zero_runs_print_csv(const zero_run *runs, int n, FILE *out)
{
    fputs("run", out);
    for (int c = 0; c < ZERO_STEP_COLUMNS; c++) fprintf(out, ",%s", keys[c]);
    fputc('\n', out);
    for (int r = 0; r < n; r++)
        for (int64_t i = 0; i < runs[r].n; i++) {
            zero_csv_text(json_string_value(zero_fact_at(runs[r].tree, "more/path")), out);
            for (int c = 0; c < ZERO_STEP_SKIPPED; c++)
                fprintf(out, isfinite(runs[r].steps[c][i]) ? ",%.17g" : ",",
                        runs[r].steps[c][i]);
            fprintf(out, ",%s\n",
                    runs[r].steps[ZERO_STEP_SKIPPED][i] != 0.0 ? "true" : "false");
        }
}
