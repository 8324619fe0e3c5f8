/* The files of a study: study.csv, written and read, study.json, read, and what a report
 * shows of them. */

#include "base/legible.h"
#include "base/quantity.h"
#include "pages/expect.h"
#include "pages/forms.h"
#include "pages/study.h"
#include "train/metrics.h"

#define CSV_BEGINNING "scaling,stage,ranks,"
#define MOST_FIELDS   100

/* ---- study.csv ---- */

/* Columns, and the members of a point that they have. */
static const char columns[] =
    "scaling; stage; ranks; state; nodes = nodes/count; fake_nodes = nodes/fake; "
    "tokens_per_rank; tokens; steps = step_seconds/steps; step_seconds = "
    "step_seconds/median; lower_quartile = step_seconds/lower_quartile; upper_quartile = "
    "step_seconds/upper_quartile; median_low = step_seconds/median_low; median_high = "
    "step_seconds/median_high; tokens_per_second; tokens_per_rank_and_second; "
    "efficiency; efficiency_low; efficiency_high; efficiency_to_ranks; exposed_share; "
    "planned_seconds = "
    "planned/step_seconds; planned_exposed_share = planned/exposed_share; "
    "simulated_seconds = simulated/step_seconds; simulated_exposed_share = "
    "simulated/exposed_share; started; load_1 = load/0; load_5 = load/1; load_15 = load/2; "
    "hosts = run/hosts; cpu = run/cpu; cores_per_rank; collectives = run/collectives; mpi "
    "= run/mpi; commit = run/commit; command = run/command; imbalance; slowest_rank; "
    "products_share; wire_share; inside_bytes; across_bytes; resumed_step";

void zero_study_print_csv(const json_t *study, FILE *out)
{
    const zero_scope all = {.node = study};
    zero_csv_rows(columns, ".9g", json_object_get(study, "points"), &all, true, out);
}

/* ---- study.csv, read: each row becomes a point, as study.json has it ---- */

typedef struct {
    const char *path;
    char *at; /* the next row */
    int64_t row;
    char *fields[MOST_FIELDS], *names[MOST_FIELDS];
    int n_fields, n_names;
} reader;

static zero_status broken(const reader *r, const char *why)
{
    return zero_fail(ZERO_ERR_FORMAT, "%.500s, row %" PRId64 ": %s", r->path, r->row, why);
}

/* The fields of the next row; none at the end. */
static zero_status take_row(reader *r)
{
    r->row++;
    r->n_fields = 0;
    for (bool is_last = *r->at == '\0'; !is_last;) {
        char *to = r->at, *end = r->at + strcspn(r->at, ",\n");
        if (r->n_fields == MOST_FIELDS) return broken(r, "more than 100 fields");
        r->fields[r->n_fields] = r->at;
        if (*r->at == '"') { /* doubled quotes stand for one */
            r->fields[r->n_fields] = ++to;
            for (end = to; *end && (*end != '"' || end[1] == '"'); *to++ = *end++)
                end += *end == '"';
            if (!*end++) return broken(r, "a quote has no end");
            *to = '\0';
            if (*end && *end != ',' && *end != '\n')
                return broken(r, "expected a comma or the end of the row after a quote");
        }
        r->n_fields++;
        is_last = *end != ',';
        r->at = *end ? end + 1 : end;
        *end = '\0';
    }
    return ZERO_OK;
}

static json_t *value_of(const char *field)
{
    int64_t whole;
    double real;
    if (zero_quantity_whole(field, &whole)) return json_integer(whole);
    if (zero_quantity_real(field, &real)) return json_real(real);
    if (zero_same_text(field, "true") || zero_same_text(field, "false"))
        return json_boolean(*field == 't');
    return zero_metrics_text(field);
}

static zero_status read_row(const reader *r, json_t *study)
{
    ZERO_FORMAT_IF(r->n_fields != r->n_names,
                   "%.500s, row %" PRId64 ": expected %d fields, found %d", r->path, r->row,
                   r->n_names, r->n_fields);
    json_t *point = json_object();
    json_array_append_new(json_object_get(study, "points"), point);
    zero_spec_part column;
    for (const char *at = columns; zero_spec_next(&at, &column);) {
        char path[ZERO_FACT_NAME], *slash;
        int k = 0;
        zero_print(path, "%.*s", (int)column.length - (*column.x == ' '),
                   column.x + (*column.x == ' '));
        while (k < r->n_names && !zero_same_text(r->names[k], column.name)) k++;
        if (k == r->n_names && strstr(path, "/step_seconds")) /* null is not missing */
            return zero_fail(ZERO_ERR_FORMAT, "%.500s: the column \"%s\" is missing",
                             r->path, column.name);
        if (k == r->n_names || strncmp(path, "load", 4) == 0) continue;
        json_t *value = *r->fields[k] ? value_of(r->fields[k]) : json_null();
        if ((slash = strchr(path, '/')) != NULL) *slash = '\0';
        if (slash && !json_is_null(value)) {
            if (!json_is_object(json_object_get(point, path)))
                json_object_set_new(point, path, json_object());
            json_object_set_new(json_object_get(point, path), slash + 1, value);
        } else if (!json_object_get(point, path)) {
            json_object_set_new(point, path, value);
        }
    }
    const char *scaling = zero_get_string(point, "scaling");
    ZERO_FORMAT_IF(!scaling || (!zero_same_text(scaling, "weak") &&
                                !zero_same_text(scaling, "strong")),
                   "%.500s, row %" PRId64 ": scaling: expected weak or strong, found %.60s",
                   r->path, r->row, scaling ? scaling : "none");
    json_object_set(study, "scaling", json_object_get(point, "scaling"));
    return ZERO_OK;
}

static zero_status read_csv(const char *path, char *text, size_t len, json_t **study)
{
    reader r = {.path = path, .at = text};
    const char *nul = memchr(text, '\0', len);
    ZERO_FORMAT_IF(nul, "%.500s: expected text, found a NUL at byte %td", path, nul - text);
    ZERO_TRY(take_row(&r));
    memcpy(r.names, r.fields, sizeof r.names);
    r.n_names = r.n_fields;
    *study = json_pack("{s:i, s:n, s:[]}", "study", ZERO_STUDY_FORMAT, "scaling", "points");
    for (;;) {
        ZERO_TRY(take_row(&r));
        if (r.n_fields == 0) return ZERO_OK;
        ZERO_TRY(read_row(&r, *study));
    }
}

/* ---- what is expected of study.csv and study.json from outside ---- */

/* ---- the report ---- */

/* Bytes that the metrics of a point say; null: it has none, or they are not beside the
 * study, as when only its files were copied. */
static zero_status find_memory(const char *file, const json_t *point, json_t **bytes)
{
    char path[ZERO_STORAGE_FILE_PATH], name[ZERO_POINT_TEXT];
    const char *slash = strrchr(file, '/');
    ZERO_AT_END(zero_metrics_file_destroy) zero_metrics_file metrics = {0};
    int64_t peak = 0;
    const json_t *memory;
    int n = zero_print(path, "%.*spoints/%s.jsonl", slash ? (int)(slash - file) + 1 : 0,
                       file, zero_point_name(point, name));
    *bytes = json_null();
    if (n >= (int)sizeof path || !zero_point_is(point, "measured") ||
        zero_path_look(path) == ZERO_PATH_OF_NOTHING)
        return ZERO_OK;
    ZERO_TRY(zero_metrics_read(&metrics, path));
    if (!metrics.final) return ZERO_OK;
    ZERO_TRY(zero_json_object(path, metrics.final, "memory", &memory));
    ZERO_TRY(zero_json_whole(path, memory, "measured_peak_bytes", 0, INT64_MAX, &peak));
    if (peak > 0) *bytes = json_integer(peak);
    return ZERO_OK;
}

static int compare_points(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t stages = zero_point_whole(x, "stage") - zero_point_whole(y, "stage");
    int64_t ranks = zero_point_whole(x, "ranks") - zero_point_whole(y, "ranks");
    return stages != 0 ? zero_order(stages, 0) : zero_order(ranks, 0);
}

static const char row_spec[] =
    "ranks; measured? = state == \"measured\"; tokens_per_second = 1 * tokens_per_second; "
    "efficiency = 1 * efficiency; efficiency_low = 1 * efficiency_low; efficiency_high = 1 "
    "* efficiency_high; step_seconds = 1 * step_seconds/median; lower_quartile = "
    "1 * step_seconds/lower_quartile; upper_quartile = 1 * step_seconds/upper_quartile; "
    "exposed_share = 1 * exposed_share; planned_seconds = 1 * planned/step_seconds; "
    "simulated_seconds = 1 * simulated/step_seconds; peak_bytes; fake_nodes? = state == "
    "\"measured\" && nodes/fake; imbalance = 1 * imbalance; products_share = 1 * "
    "products_share; wire_share = 1 * wire_share; inside_bytes = 1 * inside_bytes; "
    "across_bytes = 1 * across_bytes";

/* `file` is where the study was read; NULL: nowhere. */
static zero_status make_report(const char *path, const char *file, const json_t *study,
                               json_t **report)
{
    const json_t *points = json_object_get(study, "points");
    size_t n = json_array_size(points);
    ZERO_FREED json_t **sorted = malloc(n * sizeof *sorted);
    json_t *list = json_array(), *stages = json_array(), *of_stage = NULL;
    json_auto_t *new =
        json_pack("{s:o, s:O, s:o, s:{s:s, s:o}}", "path", zero_metrics_text(path),
                  "scaling", json_object_get(study, "scaling"), "stages", stages, "more",
                  "path", ZERO_SHOWN(path), "points", list);
    ZERO_TRY(zero_allocated(sorted && new, "%.500s: no memory for its points", path));
    for (size_t i = 0; i < n; i++) sorted[i] = json_array_get(points, i);
    zero_sort(sorted, n, compare_points);
    for (size_t i = 0; i < n; i++) {
        char words[ZERO_POINT_TEXT];
        json_array_append(list, sorted[i]);
        ZERO_FORMAT_IF(i > 0 && compare_points(&sorted[i - 1], &sorted[i]) == 0,
                       "%.500s: expected each point once, found %s twice", path,
                       zero_point_words(sorted[i], words));
    }
    for (size_t i = 0; i < n; i++) {
        json_t *p = sorted[i], *memory = json_null();
        if (i == 0 ||
            zero_point_whole(p, "stage") != zero_point_whole(sorted[i - 1], "stage")) {
            of_stage = json_array();
            zero_put_item(stages, "{s:O, s:o}", "stage", json_object_get(p, "stage"),
                          "points", of_stage);
        }
        if (file) ZERO_TRY(find_memory(file, p, &memory));
        json_t *row = zero_facts_pick(&(zero_scope){.node = p}, row_spec);
        json_object_set_new(row, "peak_bytes", memory);
        json_array_append_new(of_stage, row);
    }
    *report = json_incref(new);
    return ZERO_OK;
}

/* ---- reading ---- */

static bool is_csv(const unsigned char *text, size_t len)
{
    const size_t n = strlen(CSV_BEGINNING);
    return len >= n && memcmp(text, CSV_BEGINNING, n) == 0;
}

zero_status zero_study_is(const char *path, bool *is)
{
    zero_file file;
    unsigned char begin[256] = "";
    size_t n;
    int key = 0; /* study.json begins with an object whose first key is "study" */
    *is = zero_path_look(path) == ZERO_PATH_OF_DIRECTORY;
    if (*is) return ZERO_OK;
    ZERO_TRY(zero_file_open(path, &file));
    zero_status st = zero_file_read_some(&file, 0, begin, sizeof begin - 1, &n);
    zero_file_close(&file);
    sscanf((char *)begin, " { \"study\"%n", &key);
    if (st == ZERO_OK) *is = is_csv(begin, n) || key > 0;
    return st;
}

/* Of a text with a zero at its end, for the reader of CSV, which changes it. */
static zero_status read_text(const char *path, const char *file, const zero_bytes *text,
                             json_t **report)
{
    json_auto_t *study = NULL;
    bool of_rows = is_csv(text->bytes, text->len);
    ZERO_TRY(of_rows ? read_csv(path, (char *)text->bytes, text->len - 1, &study)
                     : zero_json_parse(path, text->bytes, text->len - 1, &study));
    /* `row`: what a point is called in messages, "row" or "point". */
    const char *row = of_rows ? "row" : "point";
    ZERO_TRY(zero_expect(path, study, "study"));
    const char *scaling = zero_get_string(study, "scaling");
    json_t *points = json_object_get(study, "points"), *point;
    size_t i, first = row[0] == 'r' ? 2 : 1; /* row 1 of CSV has the names */
    ZERO_FORMAT_IF(!zero_same_text(scaling, "weak") && !zero_same_text(scaling, "strong"),
                   "%.500s: \"scaling\": expected weak or strong, found %.60s", path,
                   scaling);
    ZERO_FORMAT_IF(json_array_size(points) == 0 ||
                       json_array_size(points) > ZERO_STUDY_POINTS,
                   "%.500s: expected a study of at most %d points, found %zu", path,
                   ZERO_STUDY_POINTS, json_array_size(points));
    json_array_foreach(points, i, point)
    {
        char where[600];
        zero_print(where, "%.500s, %s %zu", path, row, i + first);
        static const char *const models[] = {"planned", "simulated"};
        ZERO_TRY(zero_expect(where, point, "point"));
        if (zero_point_is(point, "measured"))
            ZERO_TRY(zero_expect(where, point, "measured point"));
        else
            ZERO_FORMAT_IF(
                !zero_point_is(point, "missing") && !zero_point_is(point, "failed"),
                "%.500s: \"state\": expected measured, missing or failed, found %.60s",
                where, zero_get_string(point, "state"));
        for (int k = 0; k < 2; k++)
            if (!json_is_null(json_object_get(point, models[k])))
                ZERO_TRY(zero_expect(where, point, models[k]));
    }
    return make_report(path, file, study, report);
}

zero_status zero_study_read(json_t **report, const char *path)
{
    char file[ZERO_STORAGE_FILE_PATH];
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    bool is_whole = zero_path_look(path) == ZERO_PATH_OF_DIRECTORY;
    int n = zero_print(file, "%s%s", path, is_whole ? "/study.json" : "");
    ZERO_FAIL_IF(n >= (int)sizeof file, ZERO_ERR_IO, "%.100s...: the path is too long",
                 path);
    ZERO_FAIL_IF(
        is_whole && zero_path_look(file) == ZERO_PATH_OF_NOTHING, ZERO_ERR_IO,
        "%.500s: expected the directory of a study, as zero sweep --out makes it, or "
        "the metrics of a run, found a directory without study.json",
        path);
    ZERO_TRY(zero_bytes_read(&text, file));
    ZERO_TRY(zero_bytes_append(&text, "", 1));
    return read_text(path, file, &text, report);
}

zero_status zero_study_parse(json_t **report, const char *path, const void *text,
                             size_t len)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes copy = {0};
    ZERO_TRY(zero_bytes_append(&copy, text, len));
    ZERO_TRY(zero_bytes_append(&copy, "", 1));
    return read_text(path, NULL, &copy, report);
}

/* ---- CSV of a report ---- */

void zero_studies_print_csv(json_t *const *reports, int n, FILE *out)
{
    static const char spec[] =
        "study = more/path; scaling; stage; ranks; measured; tokens_per_second; "
        "efficiency; step_seconds; lower_quartile; upper_quartile; exposed_share; "
        "planned_seconds; simulated_seconds; peak_bytes; fake_nodes; imbalance; "
        "products_share; wire_share; inside_bytes; across_bytes";
    zero_csv_rows(spec, "", NULL, NULL, true, out);
    for (int k = 0; k < n; k++) {
        const zero_scope report = {.node = reports[k]};
        zero_scope stage = {.outer = &report};
        while (zero_scope_next(json_object_get(reports[k], "stages"), &stage))
            zero_csv_rows(spec, ".17g", json_object_get(stage.node, "points"), &stage,
                          false, out);
    }
}
