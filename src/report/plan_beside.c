#include "report/plan_facts.h"

#include "report/json_put.h"
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
            /* The first chain that does not end before this row. */
            int chain = 0, high = n_tails;
            while (chain < high) {
                int middle = chain + (high - chain) / 2;
                if (m->pairs[tails[middle]].row < row)
                    chain = middle + 1;
                else
                    high = middle;
            }
            ZERO_FAIL_IF(!zero_grow(m->pairs, m->n_pairs, &m->capacity), ZERO_ERR_NOMEM,
                         "no memory to merge programs");
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

/* Three digits and a binary unit, or up to 999 bytes: "1.25M", in five columns. */
static json_t *short_bytes(int64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double x = (double)bytes;
    size_t unit = 0;
    for (; x >= 999.5; unit++) x /= 1024.0;
    int digits = unit == 0 || x >= 99.95 ? 0 : x < 9.995 ? 2 : 1;
    return json_sprintf("%.*f%.*s", digits, x, unit > 0, &units[unit]);
}

/* Peaks and widths of a table in which programs stand side by side. */
typedef struct {
    int peaks[ZERO_STAGE_COUNT];      /* the steps' highest instructions */
    size_t name_width, operand_width; /* columns of the words */
} beside;

/* A line: an instruction, and what it moves and leaves in each stage that has it. */
static json_t *line_of(const zero_plan_row *row, const zero_plan_entries *programs, int n,
                       const beside *b)
{
    char operand[ZERO_PLAN_TEXT];
    const int first = owner(row);
    const zero_plan_entry *e = &programs[first].list[row->of[first]];
    zero_plan_entry_operand(&programs[first], e, operand);
    const bool has_micro = e->at >= 0 && zero_ops[e->i->op].has_microbatch;
    json_t *cells = json_array();
    json_t *line = json_pack(
        "{s:s, s:s, s:o, s:o}", "name", zero_plan_entry_name(e), "operand", operand,
        "micro", has_micro ? json_sprintf("%d", e->i->microbatch) : json_string(""),
        "cells", cells);
    for (int k = 0; k < n; k++) {
        e = row->of[k] >= 0 ? &programs[k].list[row->of[k]] : NULL;
        zero_put_item(cells, "{s:o*, s:o*, s:b}", "bytes",
                      e && e->bytes >= 0 ? short_bytes(e->bytes) : NULL, "live",
                      e && e->at >= 0 ? short_bytes((int64_t)e->i->live_bytes) : NULL,
                      "is_peak", e && e->at >= 0 && e->at == b->peaks[k]);
    }
    return line;
}

/* The rows, and what is below them; `programs` [r->n] have been made. */
static zero_status describe(const zero_plan_report *r, const zero_plan_entries *programs,
                            json_t *facts)
{
    static const char *const names[] = {"sent in the step", "gradients freed", "peak"};
    ZERO_FREED zero_plan_row *rows = NULL;
    int n_rows;
    beside b = {.name_width = 0};
    zero_legend legend = {0};
    ZERO_TRY(zero_plan_entries_merge(programs, r->n, &rows, &n_rows));
    json_t *lines = json_array(), *sums = json_array(), *stages = json_array();
    for (int i = 0; i < 3; i++) zero_put_item(sums, "{s:s, s:[]}", "name", names[i], "of");
    for (int k = 0; k < r->n; k++) {
        const int number = zero_plan_stage_number(&r->stages[k]);
        /* Below a stage's column: what its step sends, frees, and holds at most. */
        const zero_schedule *s = &r->stages[k].schedule;
        int *peak = &b.peaks[k];
        char operand[ZERO_PLAN_TEXT];
        const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
        int64_t of[3] = {0};
        for (int at = 0; at < p->length; at++)
            if (p->code[at].live_bytes > p->code[*peak].live_bytes) *peak = at;
        for (int i = 0; i < ZERO_EXCHANGES; i++) {
            zero_traffic one =
                zero_schedule_traffic(s, ZERO_PROGRAM_STEP, zero_exchange_ops[i]);
            of[0] += zero_traffic_sent(&one);
        }
        for (int i = 0; i < programs[k].n; i++) {
            zero_plan_entry_operand(&programs[k], &programs[k].list[i], operand);
            b.name_width = zero_max_size(
                b.name_width, strlen(zero_plan_entry_name(&programs[k].list[i])));
            b.operand_width = zero_max_size(b.operand_width, strlen(operand));
            if (programs[k].list[i].at < 0) of[1] += programs[k].list[i].bytes;
        }
        of[2] = (int64_t)p->code[*peak].live_bytes;
        for (size_t i = 0; i < 3; i++)
            json_array_append_new(json_object_get(json_array_get(sums, i), "of"),
                                  short_bytes(of[i]));
        json_array_append_new(
            stages, json_sprintf("%d %.20s", number, zero_stage_at(number)->name));
        zero_legend_add(&legend, &programs[k]);
    }
    for (int i = 0; i < n_rows; i++)
        json_array_append_new(lines, line_of(&rows[i], programs, r->n, &b));
    zero_put_members(facts, "{s:I, s:I, s:b, s:o, s:o, s:o, s:o}", "name_width",
                     (json_int_t)b.name_width, "operand_width", (json_int_t)b.operand_width,
                     "has_microbatches", r->config.plan.accumulation > 1, "stages", stages,
                     "lines", lines, "sums", sums, "legend", zero_legend_facts(&legend));
    return ZERO_OK;
}

zero_status zero_plan_show_beside(const zero_plan_report *r, FILE *out)
{
    zero_plan_entries programs[ZERO_STAGE_COUNT] = {{0}};
    json_t *facts = zero_plan_setup_facts(r);
    zero_status st = ZERO_OK;
    for (int k = 0; k < r->n && st == ZERO_OK; k++)
        st =
            zero_plan_entries_make(&programs[k], &r->stages[k].schedule, ZERO_PROGRAM_STEP);
    if (st == ZERO_OK) st = describe(r, programs, facts);
    for (int k = 0; k < r->n; k++) zero_plan_entries_destroy(&programs[k]);
    if (st == ZERO_OK) return zero_report_print("beside", facts, out);
    json_decref(facts);
    return st;
}
