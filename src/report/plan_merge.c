/* Programs of several stages in rows: one after the other joins the rows so far, where its
 * longest common subsequence with them lies.
 *
 * A chain is a run of equal pairs (row, entry) that ascends in both. `tails[k]` ends the
 * best chain of k + 1 pairs: the one with the lowest last row (Hunt and Szymanski,
 * 1977). */
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "report/plan_entries.h"

/* A row by its key. */
typedef struct {
    uint64_t key;
    int row;
} mark;

typedef struct {
    int row, entry;
    int64_t before; /* the pair before it in its chain; -1: none */
} pair;

typedef struct {
    const zero_plan_entries *programs;
    zero_plan_row *rows; /* [n] */
    int n;
    mark *marks;    /* [n], by key, then by row */
    int64_t *tails; /* [n] pairs */
    int n_tails;
    pair *pairs;
    int64_t n_pairs, capacity;
} merger;

/* ---- equal rows ---- */

static uint64_t key_of_row(const merger *m, const zero_plan_row *row)
{
    int k = 0;
    while (row->of[k] < 0) k++;
    return m->programs[k].list[row->of[k]].key;
}

static int compare_marks(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void sort_rows(merger *m)
{
    for (int i = 0; i < m->n; i++) m->marks[i] = (mark){key_of_row(m, &m->rows[i]), i};
    if (m->n > 0) qsort(m->marks, (size_t)m->n, sizeof *m->marks, compare_marks);
}

/* The first mark after those of this key. */
static int end_of(const merger *m, uint64_t key)
{
    int low = 0, high = m->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (m->marks[middle].key <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- chains ---- */

/* The first chain that does not end before this row. */
static int chain_for(const merger *m, int row)
{
    int low = 0, high = m->n_tails;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (m->pairs[m->tails[middle]].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static zero_status add_pair(merger *m, int row, int entry)
{
    int chain = chain_for(m, row);
    pair *larger = zero_grow(m->pairs, m->n_pairs, &m->capacity, sizeof *larger);
    if (!larger) return zero_fail(ZERO_ERR_NOMEM, "no memory to merge programs");
    m->pairs = larger;
    m->pairs[m->n_pairs] = (pair){row, entry, chain > 0 ? m->tails[chain - 1] : -1};
    m->tails[chain] = m->n_pairs++;
    if (chain == m->n_tails) m->n_tails++;
    return ZERO_OK;
}

/* Higher rows first, so that no chain takes two pairs of one entry. */
static zero_status find_chains(merger *m, const zero_plan_entries *program)
{
    sort_rows(m);
    for (int entry = 0; entry < program->n; entry++) {
        uint64_t key = program->list[entry].key;
        for (int k = end_of(m, key) - 1; k >= 0 && m->marks[k].key == key; k--)
            ZERO_TRY(add_pair(m, m->marks[k].row, entry));
    }
    return ZERO_OK;
}

/* match[entry] = its row in the longest chain, or -1. */
static void take_longest(const merger *m, int n_entries, int *match)
{
    for (int i = 0; i < n_entries; i++) match[i] = -1;
    int64_t at = m->n_tails > 0 ? m->tails[m->n_tails - 1] : -1;
    for (; at >= 0; at = m->pairs[at].before) match[m->pairs[at].entry] = m->pairs[at].row;
}

/* ---- joining ---- */

static zero_plan_row row_of(int k, int entry)
{
    zero_plan_row row;
    for (int i = 0; i < ZERO_STAGE_COUNT; i++) row.of[i] = -1;
    row.of[k] = entry;
    return row;
}

/* Between two matches the program's own entries come first: a gradient is freed right after
 * the instruction that both have. */
static int join(const merger *m, int k, const int *match, zero_plan_row *joined)
{
    int n = 0, row = 0, entry = 0, n_entries = m->programs[k].n;
    for (bool is_done = false; !is_done;) {
        int next = entry;
        while (next < n_entries && match[next] < 0) next++;
        is_done = next == n_entries;
        int until = is_done ? m->n : match[next];
        while (entry < next) joined[n++] = row_of(k, entry++);
        while (row < until) joined[n++] = m->rows[row++];
        if (is_done) continue;
        joined[n] = m->rows[row++];
        joined[n++].of[k] = entry++;
    }
    return n;
}

static zero_status add_program(merger *m, int k)
{
    int n = m->programs[k].n, most = m->n + n;
    zero_plan_row *joined = malloc(((size_t)most + 1) * sizeof *joined);
    int *match = malloc(((size_t)n + 1) * sizeof *match);
    m->marks = malloc(((size_t)m->n + 1) * sizeof *m->marks);
    m->tails = malloc(((size_t)m->n + 1) * sizeof *m->tails);
    m->n_tails = 0;
    m->n_pairs = 0;
    zero_status st = ZERO_OK;
    if (!joined || !match || !m->marks || !m->tails)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for %d lines", most);
    if (st == ZERO_OK) st = find_chains(m, &m->programs[k]);
    if (st == ZERO_OK) {
        take_longest(m, n, match);
        m->n = join(m, k, match, joined);
        free(m->rows);
        m->rows = joined;
        joined = NULL;
    }
    free(joined);
    free(match);
    free(m->marks);
    free(m->tails);
    return st;
}

zero_status zero_plan_entries_merge(const zero_plan_entries *programs, int n,
                                    zero_plan_row **rows, int *n_rows)
{
    merger m = {.programs = programs};
    zero_status st = ZERO_OK;
    for (int k = 0; st == ZERO_OK && k < n; k++) st = add_program(&m, k);
    free(m.pairs);
    if (st == ZERO_OK) {
        *rows = m.rows;
        *n_rows = m.n;
    } else {
        free(m.rows);
    }
    return st;
}
