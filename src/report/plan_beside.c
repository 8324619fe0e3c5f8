#include "report/plan_beside.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "report/legend_show.h"
#include "report/plan_entries.h"
#include "report/plan_facts.h"
#include "report/text.h"
#include "sharding/schedule_exchange.h"

#define CELL  13 /* columns of a stage: bytes, bytes live and the mark of the peak */
#define SHORT 5  /* columns of a number: "1.25M" */

typedef struct {
    const zero_plan_report *r;
    zero_plan_entries programs[ZERO_STAGE_COUNT];
    int peaks[ZERO_STAGE_COUNT];   /* the step's highest instruction */
    int name_width, operand_width; /* columns of the words */
    bool has_microbatches;         /* more than one */
    zero_plan_row *rows;
    int n_rows;
} table;

/* ---- numbers ---- */

/* Three digits and a binary unit, or up to 999 bytes. */
static void short_bytes(int64_t bytes, char text[ZERO_PLAN_TEXT])
{
    static const char units[] = "BKMGTPE";
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 999.5; unit++) x /= 1024.0;
    if (unit == 0)
        snprintf(text, ZERO_PLAN_TEXT, "%d", (int)bytes);
    else
        snprintf(text, ZERO_PLAN_TEXT, "%.*f%c",
                 x < 9.995   ? 2
                 : x < 99.95 ? 1
                             : 0,
                 x, units[unit]);
}

static void print_cell(const table *t, int k, const zero_plan_entry *line, FILE *out)
{
    char bytes[ZERO_PLAN_TEXT] = "", live[ZERO_PLAN_TEXT] = "";
    if (line->bytes >= 0) short_bytes(line->bytes, bytes);
    if (line->at >= 0) short_bytes((int64_t)line->i->live_bytes, live);
    bool is_peak = line->at >= 0 && line->at == t->peaks[k];
    fprintf(out, " %*s %*s%c", SHORT, bytes, SHORT, live, is_peak ? '*' : ' ');
}

/* ---- lines ---- */

/* The first stage that has the row. */
static int owner(const zero_plan_row *row)
{
    int k = 0;
    while (row->of[k] < 0) k++;
    return k;
}

static void print_words(const table *t, const zero_plan_row *row, FILE *out)
{
    int k = owner(row);
    const zero_plan_entry *line = &t->programs[k].list[row->of[k]];
    char operand[ZERO_PLAN_TEXT];
    zero_plan_entry_operand(&t->programs[k], line, operand);
    fprintf(out, "%-*s %-*s", t->name_width, zero_plan_entry_name(line), t->operand_width,
            operand);
    if (!t->has_microbatches) return;
    if (line->at >= 0 && zero_ops[line->i->op].has_microbatch)
        fprintf(out, " %3d", line->i->microbatch);
    else
        fprintf(out, " %3s", "");
}

/* Blanks at the end of a line are left out. */
static void print_trimmed(char *line, FILE *out)
{
    size_t n = strlen(line);
    while (n > 0 && line[n - 1] == ' ') n--;
    fprintf(out, "%.*s\n", (int)n, line);
}

static void print_row(const table *t, const zero_plan_row *row, FILE *out)
{
    print_words(t, row, out);
    for (int k = 0; k < t->r->n; k++) {
        int at = row->of[k];
        if (at >= 0)
            print_cell(t, k, &t->programs[k].list[at], out);
        else
            fprintf(out, "%*s", CELL, "");
    }
}

static zero_status print_rows(const table *t, FILE *out)
{
    for (int i = 0; i < t->n_rows; i++) {
        char *line = NULL;
        size_t size;
        FILE *text = open_memstream(&line, &size);
        if (text) print_row(t, &t->rows[i], text);
        if (!text || fclose(text) != 0) {
            free(line);
            return zero_fail(ZERO_ERR_NOMEM, "no memory for a line of a program");
        }
        print_trimmed(line, out);
        free(line);
    }
    return ZERO_OK;
}

static void print_heading(const table *t, FILE *out)
{
    int words = t->name_width + 1 + t->operand_width;
    fprintf(out, "\n%-*s%s", words, "step, stage", t->has_microbatches ? "    " : "");
    for (int k = 0; k < t->r->n; k++) {
        const zero_stage *stage = zero_stage_at(zero_plan_stage_number(&t->r->stages[k]));
        char name[ZERO_PLAN_TEXT];
        snprintf(name, sizeof name, "%d %.20s", zero_plan_stage_number(&t->r->stages[k]),
                 stage->name);
        fprintf(out, " %*s%s", CELL - 2, name, k + 1 < t->r->n ? " " : "");
    }
    fprintf(out, "\n%-*s%s", words, "", t->has_microbatches ? " mic" : "");
    for (int k = 0; k < t->r->n; k++)
        fprintf(out, " %*s %*s%s", SHORT, "bytes", SHORT, "live",
                k + 1 < t->r->n ? " " : "");
    fputc('\n', out);
}

/* ---- sums ---- */

static void print_sum(const table *t, const char *name,
                      int64_t (*value)(const table *t, int k), FILE *out)
{
    int words = t->name_width + 1 + t->operand_width + (t->has_microbatches ? 4 : 0);
    fprintf(out, "%-*s", words, name);
    for (int k = 0; k < t->r->n; k++) {
        char text[ZERO_PLAN_TEXT];
        short_bytes(value(t, k), text);
        fprintf(out, " %*s%s", CELL - 2, text, k + 1 < t->r->n ? " " : "");
    }
    fputc('\n', out);
}

static int64_t sent(const table *t, int k)
{
    int64_t sum = 0;
    for (int i = 0; i < ZERO_EXCHANGES; i++) {
        zero_traffic one = zero_schedule_traffic(&t->r->stages[k].schedule,
                                                 ZERO_PROGRAM_STEP, zero_exchange_ops[i]);
        sum += zero_traffic_total(&one).bytes_sent;
    }
    return sum;
}

static int64_t peak(const table *t, int k)
{
    const zero_program *p = &t->r->stages[k].schedule.programs[ZERO_PROGRAM_STEP];
    return (int64_t)p->code[t->peaks[k]].live_bytes;
}

static int64_t freed(const table *t, int k)
{
    int64_t sum = 0;
    for (int i = 0; i < t->programs[k].n; i++)
        if (t->programs[k].list[i].at < 0) sum += t->programs[k].list[i].bytes;
    return sum;
}

/* ---- the picture ---- */

static zero_status fill(table *t)
{
    for (int k = 0; k < t->r->n; k++) {
        const zero_schedule *s = &t->r->stages[k].schedule;
        const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
        ZERO_TRY(zero_plan_entries_make(&t->programs[k], s, ZERO_PROGRAM_STEP));
        for (int at = 0; at < p->length; at++)
            if (p->code[at].live_bytes > p->code[t->peaks[k]].live_bytes) t->peaks[k] = at;
        for (int i = 0; i < t->programs[k].n; i++) {
            char operand[ZERO_PLAN_TEXT];
            const zero_plan_entry *line = &t->programs[k].list[i];
            zero_plan_entry_operand(&t->programs[k], line, operand);
            int name = (int)strlen(zero_plan_entry_name(line)), what = (int)strlen(operand);
            if (name > t->name_width) t->name_width = name;
            if (what > t->operand_width) t->operand_width = what;
        }
    }
    return zero_plan_entries_merge(t->programs, t->r->n, &t->rows, &t->n_rows);
}

static zero_status print(const table *t, FILE *out)
{
    zero_legend legend = {0};
    char what[ZERO_PLAN_TEXT];
    snprintf(what, sizeof what, "instructions of rank %d in", t->r->request.rank);
    ZERO_TRY(zero_plan_show_title(t->r, what, out));
    print_heading(t, out);
    ZERO_TRY(print_rows(t, out));
    fputc('\n', out);
    print_sum(t, "sent in the step", sent, out);
    print_sum(t, "gradients freed", freed, out);
    print_sum(t, "peak", peak, out);
    fputs("\nA stage has numbers where its program has the instruction.\n"
          "bytes  sent by exchanges, given back by RELEASE and (freed), written by others\n"
          "live   memory in use during it, planned;  * the peak;  K, M, G: 1024, 1024^2 "
          "...\n",
          out);
    for (int k = 0; k < t->r->n; k++) zero_legend_add(&legend, &t->programs[k]);
    zero_legend_show(&legend, out);
    fputs("\nprograms besides the step, and exact bytes: --stage N\n", out);
    return ZERO_OK;
}

zero_status zero_plan_show_beside(const zero_plan_report *report, FILE *out)
{
    table t = {.r = report, .has_microbatches = report->config.plan.accumulation > 1};
    zero_status st = fill(&t);
    if (st == ZERO_OK) st = print(&t, out);
    for (int k = 0; k < report->n; k++) zero_plan_entries_destroy(&t.programs[k]);
    free(t.rows);
    return st;
}
