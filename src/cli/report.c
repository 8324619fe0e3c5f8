/* zero report: runs, read from their metrics, as text, CSV or JSON. */
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "base/fail.h"
#include "base/legible.h"
#include "io/whole_file.h"
#include "pages/runs.h"
#include "report/json_put.h"

typedef struct {
    const char *out;
    bool csv, json;
} report_options;

#define FIELD(name) .offset = offsetof(report_options, name)

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Report", .name = "csv", .kind = ZERO_OPTION_FLAG, .standard = "off", FIELD(csv),
     .help = "a row per step and run, with 17 digits"},
    {.name = "json", .kind = ZERO_OPTION_FLAG, .standard = "off", FIELD(json),
     .help = "one JSON object with everything"},
    {.name = "out", .kind = ZERO_OPTION_TEXT, FIELD(out), .argument = "FILE", .absent = "the standard output",
     .help = "writes the report there, completely or not at all"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

/* Everything that was read. */
typedef struct {
    zero_record records[ZERO_OPERANDS_MOST];
    zero_figures figures[ZERO_OPERANDS_MOST];
    int n_records;
} sources;

static void destroy(sources *s)
{
    for (int i = 0; i < s->n_records; i++) zero_record_destroy(&s->records[i]);
    free(s);
}

static zero_status read_run(sources *s, const char *path)
{
    zero_record *record = &s->records[s->n_records];
    ZERO_TRY(zero_record_read(record, path));
    s->n_records++;
    return zero_figures_of(record, &s->figures[s->n_records - 1]);
}

static zero_status read_all(sources *s, const zero_options *given)
{
    for (int i = 0; i < given->n_operands; i++) ZERO_TRY(read_run(s, given->operands[i]));
    return ZERO_OK;
}

/* ---- forms ---- */

static zero_status print_json(const zero_runs *runs, FILE *out)
{
    json_t *object = zero_runs_describe(runs);
    if (!object) return zero_fail(ZERO_ERR_NOMEM, "no memory for the report");
    put_out(object, out);
    return ZERO_OK;
}

static zero_status print(const sources *s, const report_options *o, FILE *out)
{
    zero_runs runs = {s->records, s->figures, s->n_records};
    if (o->json) return print_json(&runs, out);
    if (!o->csv) return zero_runs_print(&runs, out);
    zero_runs_print_csv(&runs, out);
    return ZERO_OK;
}

/* ---- --out ---- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static zero_status check_out(const char *out, const zero_options *given)
{
    for (int i = 0; i < given->n_operands; i++)
        if (is_same_file(out, given->operands[i]))
            return zero_fail(ZERO_ERR_INVALID,
                             "--out %.300s is one of the files to report on; it would be "
                             "overwritten: give another name",
                             out);
    return ZERO_OK;
}

static zero_status write_whole(const char *path, const char *text, size_t len)
{
    zero_whole_file file;
    ZERO_TRY(zero_whole_file_begin(&file, path));
    zero_status st = zero_whole_file_write(&file, text, len);
    if (st == ZERO_OK) st = zero_whole_file_end(&file);
    zero_whole_file_abandon(&file);
    return st;
}

/* The report is made in memory, since a stream's error would come too late to say what it was. */
static zero_status write_out(const sources *s, const report_options *o)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    if (!memory) return zero_fail(ZERO_ERR_NOMEM, "no memory for the report");
    zero_status st = print(s, o, memory);
    bool is_whole = !ferror(memory);
    if (fclose(memory) != 0 || !is_whole)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for the report");
    if (st == ZERO_OK) st = write_whole(o->out, text, len);
    if (st == ZERO_OK) printf("%s: %zu bytes\n", ZERO_SHOWN(o->out), len);
    free(text);
    return st;
}

/* ---- the command ---- */

static zero_status check(const report_options *o, const zero_options *given)
{
    if (given->n_operands == 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "zero report needs a file: metrics of zero train --metrics FILE");
    if (o->csv && o->json)
        return zero_fail(ZERO_ERR_INVALID, "--csv and --json: give one, not both");
    return o->out ? check_out(o->out, given) : ZERO_OK;
}

static zero_status report(const report_options *o, const zero_options *given)
{
    sources *s = calloc(1, sizeof *s);
    if (!s) return zero_fail(ZERO_ERR_NOMEM, "no memory for the report");
    zero_status st = read_all(s, given);
    if (st == ZERO_OK) st = o->out ? write_out(s, o) : print(s, o, stdout);
    destroy(s);
    return st;
}

static zero_status run(int argc, char **argv)
{
    report_options o;
    zero_options given;
    ZERO_TRY(zero_options_read(&zero_command_report, argc, argv, &o, &given));
    zero_status st = check(&o, &given);
    if (st == ZERO_OK) st = report(&o, &given);
    zero_options_destroy(&given);
    return st;
}

const zero_command zero_command_report = {
    .name = "zero report",
    .summary = "what runs were, from their metrics: figures, ledgers, comparisons",
    .usage = "zero report RUN.jsonl... [--csv | --json] [--out FILE]",
    .about =
        "Reads the --metrics of a run and shows its figures, where its time went, and "
        "whether memory and messages were as planned. Several runs stand side by side; "
        "ratios are relative to the first one, and the settings in which they differ "
        "follow. A run that was stopped is shown as far as it went, and said to be.\n"
        "It starts no MPI. A file that is not what zero train writes is refused, with the "
        "line; keys that this version does not know are ignored. Of steps that a resumed "
        "run has taken again the later ones count.",
    .example = "zero train --metrics run.jsonl\n"
               "zero report run.jsonl\n"
               "zero report run.jsonl --csv --out run.csv",
    .exits = ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA,
    .tables = &table,
    .n_tables = 1,
    .operand = "FILE",
    .size = sizeof(report_options),
    .run = run,
};
