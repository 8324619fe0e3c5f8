#include "report/plan_beside.h"

#include "base/fail.h"
#include "base/grow.h"
#include "report/json_put.h"
#include "report/plan_facts.h"
#include "report/plan_program.h"
#include "sharding/schedule_exchange.h"

/* ---- rows ---- */

/* Programs join the rows one after the other, where their longest common subsequence with
 * the rows so far lies. A chain is a run of equal pairs (row, entry) that ascends in both;
 * tails[k] ends the best chain of k + 1 pairs: the one with the lowest last row (Hunt and
 * Szymanski, 1977). */
typedef struct {
    int row, entry;
    int64_t before; /* the pair before it in its chain; -1: none */
} pair;

typedef struct {
    const zero_plan_entries *programs;
    zero_plan_row *rows; /* [n] */
    int n;
    pair *pairs;
    int64_t n_pairs, capacity;
} merger;

/* The first stage that has the row. */
static int owner(const zero_plan_row *row)
{
    int k = 0;
    while (row->of[k] < 0) k++;
    return k;
}

static const zero_plan_key *key_of(const merger *m, int row)
{
    int k = owner(&m->rows[row]);
    return &m->programs[k].list[m->rows[row].of[k]].key;
}

static size_t slot_of(const zero_plan_key *key, int n)
{
    size_t hash = (size_t)key->word;
    hash = hash * 31 + (size_t)key->operand;
    hash = hash * 31 + (size_t)key->part;
    return (hash * 31 + (size_t)key->when) % ((size_t)n + 1);
}

/* The first chain that does not end before this row. */
static int chain_for(const pair *pairs, const int64_t *tails, int n_tails, int row)
{
    int low = 0, high = n_tails;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (pairs[tails[middle]].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* match[entry] = its row in the longest chain, or -1. first[n + 1] and next[n] list the
 * rows of a slot, the highest first, so that no chain takes two pairs of one entry. */
static zero_status find_matches(merger *m, const zero_plan_entries *program, int *match,
                                int *first, int *next, int64_t *tails)
{
    int n_tails = 0;
    m->n_pairs = 0;
    for (int i = 0; i <= m->n; i++) first[i] = -1;
    for (int row = 0; row < m->n; row++) {
        int *slot = &first[slot_of(key_of(m, row), m->n)];
        next[row] = *slot;
        *slot = row;
    }
    for (int entry = 0; entry < program->n; entry++) {
        const zero_plan_key *key = &program->list[entry].key;
        match[entry] = -1;
        for (int row = first[slot_of(key, m->n)]; row >= 0; row = next[row]) {
            if (memcmp(key, key_of(m, row), sizeof *key) != 0) continue;
            int chain = chain_for(m->pairs, tails, n_tails, row);
            if (!zero_grow(m->pairs, m->n_pairs, &m->capacity))
                return zero_fail(ZERO_ERR_NOMEM, "no memory to merge programs");
            m->pairs[m->n_pairs] = (pair){row, entry, chain > 0 ? tails[chain - 1] : -1};
            tails[chain] = m->n_pairs++;
            if (chain == n_tails) n_tails++;
        }
    }
    for (int64_t at = n_tails > 0 ? tails[n_tails - 1] : -1; at >= 0;
         at = m->pairs[at].before)
        match[m->pairs[at].entry] = m->pairs[at].row;
    return ZERO_OK;
}

static zero_status add_program(merger *m, int k)
{
    size_t rows = (size_t)m->n + 1, entries = (size_t)m->programs[k].n + 1;
    ZERO_FREED zero_plan_row *joined = NULL;
    ZERO_FREED int *numbers = NULL;
    ZERO_FREED int64_t *tails = NULL;
    ZERO_TRY(zero_new(&joined, rows + entries, "lines of programs"));
    ZERO_TRY(zero_new(&numbers, 2 * rows + entries, "lines of programs"));
    ZERO_TRY(zero_new(&tails, rows, "lines of programs"));
    int *match = numbers + 2 * rows, n = 0, row = 0, n_entries = m->programs[k].n;
    ZERO_TRY(find_matches(m, &m->programs[k], match, numbers, numbers + rows, tails));
    /* Between two matches the program's own entries come first: a gradient is freed right
     * after the instruction that both have. */
    for (int entry = 0; entry <= n_entries; entry++) {
        bool is_end = entry == n_entries, is_own = !is_end && match[entry] < 0;
        int until = is_end ? m->n : is_own ? row : match[entry];
        while (row < until) joined[n++] = m->rows[row++];
        if (is_end) break;
        for (int i = 0; i < ZERO_STAGE_COUNT && is_own; i++) joined[n].of[i] = -1;
        if (!is_own) joined[n] = m->rows[row++];
        joined[n++].of[k] = entry;
    }
    m->n = n;
    free(m->rows);
    m->rows = joined;
    joined = NULL;
    return ZERO_OK;
}

zero_status zero_plan_entries_merge(const zero_plan_entries *programs, int n,
                                    zero_plan_row **rows, int *n_rows)
{
    merger m = {.programs = programs};
    zero_status st = ZERO_OK;
    for (int k = 0; st == ZERO_OK && k < n; k++) st = add_program(&m, k);
    free(m.pairs);
    if (st != ZERO_OK) free(m.rows);
    if (st != ZERO_OK) return st;
    *rows = m.rows;
    *n_rows = m.n;
    return ZERO_OK;
}

/* ---- the picture ---- */

#define CELL  13 /* columns of a stage: bytes, bytes live and the mark of the peak */
#define SHORT 5  /* columns of a number: "1.25M" */
#define LINE  128

typedef struct {
    const zero_plan_report *r;
    zero_plan_entries programs[ZERO_STAGE_COUNT];
    int peaks[ZERO_STAGE_COUNT];   /* the step's highest instruction */
    int name_width, operand_width; /* columns of the words */
    bool has_microbatches;         /* more than one */
    zero_plan_row *rows;
    int n_rows;
} table;

/* Three digits and a binary unit, or up to 999 bytes. */
static void short_bytes(int64_t bytes, char text[ZERO_PLAN_TEXT])
{
    static const char units[] = "BKMGTPE";
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 999.5; unit++) x /= 1024.0;
    int digits = unit == 0 || x >= 99.95 ? 0 : x < 9.995 ? 2 : 1;
    snprintf(text, ZERO_PLAN_TEXT, "%.*f%.*s", digits, x, unit > 0, &units[unit]);
}

static void print_sums(const table *t, FILE *out)
{
    static const char *const names[] = {"sent in the step", "gradients freed", "peak"};
    int64_t sums[3][ZERO_STAGE_COUNT] = {{0}};
    for (int k = 0; k < t->r->n; k++) {
        const zero_schedule *s = &t->r->stages[k].schedule;
        for (int i = 0; i < ZERO_EXCHANGES; i++) {
            zero_traffic one =
                zero_schedule_traffic(s, ZERO_PROGRAM_STEP, zero_exchange_ops[i]);
            sums[0][k] += zero_traffic_sent(&one);
        }
        for (int i = 0; i < t->programs[k].n; i++)
            if (t->programs[k].list[i].at < 0) sums[1][k] += t->programs[k].list[i].bytes;
        sums[2][k] = (int64_t)s->programs[ZERO_PROGRAM_STEP].code[t->peaks[k]].live_bytes;
    }
    int words = t->name_width + 1 + t->operand_width + (t->has_microbatches ? 4 : 0);
    for (int i = 0; i < 3; i++) {
        fprintf(out, "%-*s", words, names[i]);
        for (int k = 0; k < t->r->n; k++) {
            char text[ZERO_PLAN_TEXT];
            short_bytes(sums[i][k], text);
            fprintf(out, " %*s%s", CELL - 2, text, k + 1 < t->r->n ? " " : "");
        }
        fputc('\n', out);
    }
}

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
    ZERO_TRY(zero_report_print("title of programs", zero_plan_setup_facts(t->r), out));
    int words = t->name_width + 1 + t->operand_width;
    fprintf(out, "\n%-*s%s", words, "step, stage", t->has_microbatches ? "    " : "");
    for (int k = 0; k < t->r->n; k++) {
        char name[ZERO_PLAN_TEXT];
        int number = zero_plan_stage_number(&t->r->stages[k]);
        snprintf(name, sizeof name, "%d %.20s", number, zero_stage_at(number)->name);
        fprintf(out, " %*s%s", CELL - 2, name, k + 1 < t->r->n ? " " : "");
    }
    fprintf(out, "\n%-*s%s", words, "", t->has_microbatches ? " mic" : "");
    for (int k = 0; k < t->r->n; k++)
        fprintf(out, " %*s %*s%s", SHORT, "bytes", SHORT, "live",
                k + 1 < t->r->n ? " " : "");
    fputc('\n', out);
    for (int i = 0; i < t->n_rows; i++) {
        /* Blanks at the end of the line are left out. */
        const zero_plan_row *row = &t->rows[i];
        char text[LINE], operand[ZERO_PLAN_TEXT], micro[16] = "";
        int k = owner(row);
        const zero_plan_entry *e = &t->programs[k].list[row->of[k]];
        zero_plan_entry_operand(&t->programs[k], e, operand);
        if (e->at >= 0 && zero_ops[e->i->op].has_microbatch)
            snprintf(micro, sizeof micro, "%d", e->i->microbatch);
        int n = snprintf(text, sizeof text, "%-*s %-*s", t->name_width,
                         zero_plan_entry_name(e), t->operand_width, operand);
        if (t->has_microbatches) n += snprintf(text + n, LINE - (size_t)n, " %3s", micro);
        for (k = 0; k < t->r->n; k++) {
            char bytes[ZERO_PLAN_TEXT] = "", live[ZERO_PLAN_TEXT] = "", mark = ' ';
            e = row->of[k] >= 0 ? &t->programs[k].list[row->of[k]] : NULL;
            if (e && e->bytes >= 0) short_bytes(e->bytes, bytes);
            if (e && e->at >= 0) short_bytes((int64_t)e->i->live_bytes, live);
            if (e && e->at >= 0 && e->at == t->peaks[k]) mark = '*';
            n += snprintf(text + n, LINE - (size_t)n, " %*s %*s%c", SHORT, bytes, SHORT,
                          live, mark);
        }
        while (n > 0 && text[n - 1] == ' ') n--;
        fprintf(out, "%.*s\n", n, text);
    }
    fputc('\n', out);
    print_sums(t, out);
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
