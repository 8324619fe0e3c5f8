/* The paper's printed numbers against our formulas, and the tables that show both. */

#include <jansson.h>

#include "nn/shape.h"
#include "paper/paper_tree.h"
#include "report/plan_facts.h"
#include "sharding/formula.h"
#include "support/laws.h"
#include "support/table.h"

static const struct {
    const char *name;
    int cells, rounded, scaled, truncated;
} papers[] = {{"table1", 54, 46, 0, 8}, {"table2", 20, 13, 7, 0}, {"fig1", 4, 4, 0, 0}};
#define N_PAPERS 3

/* A printed cell, from the tree. */
typedef struct {
    const char *printed, *agreement;
    int64_t psi;
    int n_ranks, parts, stage;
    double ours, off;
} printed_cell;

static void for_all_cells(void (*check)(const printed_cell *c))
{
    for (int i = 0; i < N_PAPERS; i++) {
        json_t *tree = tree_of(papers[i].name), *cell;
        size_t k;
        json_array_foreach(json_object_get(tree, "cells"), k, cell)
        {
            printed_cell c = {
                .psi = (int64_t)zero_fact_number(cell, "or(psi, 0)"),
                .n_ranks = (int)zero_fact_number(cell, "ranks"),
                .parts = (int)zero_fact_number(cell, "model_parallel"),
                .stage = (int)zero_fact_number(cell, "stage"),
                .ours = zero_fact_number(cell, "ours"),
                .off = zero_fact_number(cell, "off"),
                .printed = json_string_value(json_object_get(cell, "printed")),
                .agreement = json_string_value(json_object_get(cell, "agreement"))};
            check(&c);
        }
        assert_int_equal(k, papers[i].cells);
        json_decref(tree);
    }
}

/* ---- the numbers ---- */

static void check_cell(const printed_cell *c)
{
    assert_string_not_equal(c->agreement, "differs");
    if (strcmp(c->agreement, "scaled") == 0) assert_true(c->off < 0 && c->off > -0.006);
    if (strcmp(c->agreement, "truncated") == 0) assert_true(c->off < 0);
}

TEST(every_printed_number_follows_from_the_formulas)
{
    for_all_cells(check_cell);
}

static double with(const printed_cell *c, int n_ranks, int stage, zero_type type)
{
    if (c->psi > 0) return zero_formula_state_bytes(c->psi, n_ranks, stage, type);
    return (double)zero_formula_largest_model(32e9, n_ranks, stage, type) * c->parts;
}

static void assert_differs(const printed_cell *c, int n_ranks, int stage, zero_type type)
{
    double exact = with(c, n_ranks, stage, type);
    assert_string_equal(zero_paper_compare(c->printed, exact, c->parts).agreement,
                        "differs");
}

/* The formula of another stage, of fp32, of a quarter of the ranks: wherever it gives
 * something else at all (one rank shares nothing), no printed number agrees. */
static void check_wrong_formulas(const printed_cell *c)
{
    int n = c->n_ranks;
    assert_true(with(c, n, c->stage, ZERO_BF16) == c->ours);
    if (n == 1) return;
    for (int other = 0; other <= 3; other++)
        if (other != c->stage) assert_differs(c, n, other, ZERO_BF16);
    if (c->stage == 1 || c->stage == 2) assert_differs(c, n, c->stage, ZERO_FP32);
    if (c->stage == 3) assert_differs(c, n / 4, c->stage, ZERO_BF16);
}

TEST(a_wrong_formula_is_seen)
{
    for_all_cells(check_wrong_formulas);
}

TEST(agreement_is_decided_by_the_printed_digits)
{
    /* A half goes up; "scaled" is 4 times 7.6, which 4 times 7.7 is not. */
    for (test_table t = table_open("paper/agreement.txt"); table_next(&t);) {
        double exact = strtod(t.field[1], NULL);
        zero_paper_cell cell = zero_paper_compare(t.field[0], exact, atoi(t.field[2]));
        if (strcmp(cell.agreement, t.field[3]) != 0)
            fail_msg("%s beside %g: %s", t.field[0], exact, cell.agreement);
        double printed = strtod(t.field[0], NULL) * cell.unit;
        assert_true(fabs(cell.printed / printed - 1.0) < 1e-12);
        assert_true(fabs(exact * (1.0 + cell.off) / printed - 1.0) < 1e-12);
    }
}

/* ---- what is shown ---- */

#define TEXT_SIZE 32768

static int occurrences(const char *text, const char *word)
{
    int n = 0;
    while ((text = strstr(text, word)) != NULL) n++, text++;
    return n;
}

TEST(a_terminal_shows_every_cell_and_counts_them)
{
    for (int i = 0; i < N_PAPERS; i++) {
        char text[TEXT_SIZE], counts[100];
        show(papers[i].name, false, text, TEXT_SIZE);
        assert_fits_a_terminal(text);
        assert_int_equal(occurrences(text, "rounded\n"), papers[i].rounded);
        assert_int_equal(occurrences(text, "scaled\n"), papers[i].scaled);
        assert_int_equal(occurrences(text, "truncated\n"), papers[i].truncated);
        assert_int_equal(occurrences(text, "differs"), 0);
        snprintf(counts, sizeof counts, "\n%d cells: %d rounded,", papers[i].cells,
                 papers[i].rounded);
        assert_int_equal(occurrences(text, counts), 1);
        assert_int_equal(occurrences(text, " 0 differ\n"), 1);
    }
}

TEST(what_is_shown_says_which_cell_agrees_how)
{
    char one[TEXT_SIZE], two[TEXT_SIZE];
    show("table1", false, one, TEXT_SIZE);
    show("table2", false, two, TEXT_SIZE);
    assert_non_null(strstr(one, "4187.5 GB      4187    -0.01 %   truncated\n"));
    assert_non_null(strstr(one, "41.25 GB      41.3    +0.12 %   rounded\n"));
    assert_non_null(strstr(two, "0.512 T       0.5T    -2.34 %   rounded\n"));
    assert_non_null(strstr(two, "off by at most 0.55 %\n"));
    assert_non_null(strstr(two, "\n20 cells: 13 rounded, 7 scaled, 0 differ\n"));
}

TEST(json_holds_the_same_cells)
{
    for (int i = 0; i < N_PAPERS; i++) {
        char text[TEXT_SIZE];
        show(papers[i].name, true, text, TEXT_SIZE);
        json_t *object = json_loads(text, 0, NULL);
        assert_non_null(object);
        assert_int_equal(zero_fact_number(object, "count(cells)"), papers[i].cells);
        assert_int_equal(zero_fact_number(object, "counts/rounded"), papers[i].rounded);
        assert_int_equal(zero_fact_number(object, "counts/scaled"), papers[i].scaled);
        assert_int_equal(zero_fact_number(object, "counts/truncated"), papers[i].truncated);
        LAWS(object, "counts/differs == 0", "all(cells, ours > 0 && abs(off) < 0.03)",
             "all(cells, abs(paper / ours - 1 - off) < 1e-12)");
        json_decref(object);
    }
}

TEST(an_unknown_table_is_answered_with_those_that_exist)
{
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_int_equal(zero_paper_show("table3", true, out), ZERO_ERR_INVALID);
    assert_int_equal(ftell(out), 0);
    fclose(out);
    for (int i = 0; i < N_PAPERS; i++) assert_told(papers[i].name);
    assert_told("fig6");
    assert_told("fig7");
    assert_told("table3");
}

TEST(the_table_of_models_has_a_line_for_each)
{
    char text[TEXT_SIZE];
    FILE *out = fmemopen(text, TEXT_SIZE, "w");
    assert_ok(zero_models_show(out));
    assert_int_equal(fclose(out), 0);
    assert_fits_a_terminal(text);
    int n;
    const zero_preset *rows = zero_model_presets(&n);
    for (int i = 0; i < n; i++) {
        char start[64], psi[32];
        snprintf(start, sizeof start, "\n%s ", rows[i].name);
        assert_int_equal(occurrences(text, start), 1);
        snprintf(psi, sizeof psi, " %lld ", (long long)zero_shape_count(&rows[i].shape));
        const char *line = strstr(text, start) + 1, *found = strstr(line, psi);
        assert_true(found && found < line + strcspn(line, "\n"));
    }
}
