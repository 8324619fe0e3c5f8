/* Figures 2, 3, 4 and 8 of the paper beside the model of time: every cell is there, and the shapes are
 * the paper's. */

#define TEST_HAS_MAIN
#include "paper/paper_tree.h"
#include "support/table.h"

/* The runs, typed a second time in runs.txt: tables 5, 6, 9, 10 and figures 2, 3, 4, 8; Turing-NLG and a
 * trillion parameters, of the text. */
typedef struct {
    char figure[16], size[16], system[16];
    int devices, parts, layers, hidden, heads, batch, total;
    double paper; /* Tflop/s; 0: out of memory; -1: none */
} row;

static row rows[64];
static int n_rows;

static void read_rows(void)
{
    FILE *file = fopen(TEST_SOURCE_DIR "/tests/paper/runs.txt", "r");
    assert_non_null(file);
    for (row *r = rows;
         fscanf(file, "%15s %15s %15s %d %d %d %d %d %d %d %lf", r->figure, r->size,
                r->system, &r->devices, &r->parts, &r->layers, &r->hidden, &r->heads,
                &r->batch, &r->total, &r->paper) == 11;
         r++)
        n_rows++;
    fclose(file);
}

static const char *const names[] = {"fig2", "fig3",       "fig4",
                                    "fig8", "turing-nlg", "trillion"};

/* All figures, in the order of `names`, and the machine; made before the tests. */
static json_t *figures[COUNT(names)];                      /* their data */
static json_t *trees[COUNT(names)], *shapes[COUNT(names)]; /* of trees, with data */
static zero_machine_file machine;

static int set_up(void **state)
{
    (void)state;
    read_rows();
    machine = dgx2();
    for (int k = 0; k < (int)COUNT(names); k++) {
        figures[k] = zero_paper_data(names[k]);
        trees[k] = tree_of(names[k]);
        shapes[k] = json_copy(trees[k]);
        json_object_set(shapes[k], "data", figures[k]);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int k = 0; k < (int)COUNT(names); k++) {
        json_decref(figures[k]);
        json_decref(trees[k]);
        json_decref(shapes[k]);
    }
    return 0;
}

static int figure_number(const char *name)
{
    int k = 0;
    while (strcmp(names[k], name) != 0) k++;
    return k;
}

static const json_t *runs_of(const char *figure)
{
    return json_object_get(figures[figure_number(figure)], "runs");
}

static const char *text_of(const json_t *run, const char *key)
{
    return json_string_value(json_object_get(run, key));
}

static double number(const json_t *run, const char *key)
{
    return zero_fact_number(run, key);
}

/* The run of row i, which is the next one of its figure. */
static const json_t *run_of(int i)
{
    int k = 0;
    while (i - k > 0 && strcmp(rows[i - k - 1].figure, rows[i].figure) == 0) k++;
    const json_t *run = json_array_get(runs_of(rows[i].figure), (size_t)k);
    assert_non_null(run);
    return run;
}

static const json_t *named(const char *of, const char *size, const char *system)
{
    const json_t *run;
    size_t i;
    json_array_foreach(runs_of(of), i, run)
    {
        if (strcmp(text_of(run, "model"), size) == 0 &&
            strcmp(text_of(run, "system"), system) == 0)
            return run;
    }
    fail_msg("%s has no %s %s", of, size, system);
    return NULL;
}

/* Of a figure's tree. */
static double fact(const char *of, const char *expression)
{
    return zero_fact_number(trees[figure_number(of)], expression);
}

static double rate_of(const json_t *run)
{
    return time_of_row(run, &machine).rate / TERA;
}

/* ---- the cells ---- */

TEST(every_run_of_the_paper_is_there)
{
    int n = 0;
    for (int i = 0; i < n_rows; i++) {
        const row *r = &rows[i];
        const json_t *run = run_of(i);
        assert_string_equal(text_of(run, "model"), r->size);
        assert_string_equal(text_of(run, "system"), r->system);
        assert_true(number(run, "model_parallel * ranks") == r->devices);
        assert_true(number(run, "model_parallel") == r->parts);
        assert_true(number(run, "layers") == r->layers);
        assert_true(number(run, "hidden") == r->hidden);
        assert_true(number(run, "heads") == r->heads);
        assert_true(number(run, "batch") == r->batch);
        assert_true(number(run, "batch * ranks") == r->total);
        assert_true(number(run, "paper") == r->paper);
    }
    for (int k = 0; k < (int)COUNT(names); k++)
        n += (int)json_array_size(runs_of(names[k]));
    assert_int_equal(n, n_rows);
}

/* A cell that is far off is explained; what the paper ran fits, and what it could not does not. */
TEST(cells_have_notes_and_memory)
{
    char law[80];
    snprintf(law, sizeof law,
             "all(cells, !ratio || (abs(or(ratio, 1) - 1) > %g) == !(!note))",
             ZERO_PAPER_NEAR);
    for (int k = 0; k < (int)COUNT(names); k++) {
        assert_true(fact(names[k], law) == 1.0);
        assert_true(fact(names[k], "all(cells, paper_fits == (bytes <= 32e9))") == 1.0);
        assert_true(fact(names[k], "typically_off") < 0.295);
    }
}

/* The two numbers that figure 4 gave are where its errors are least. */
static double squares_of_figure_4(double share, double tokens, double bandwidth)
{
    zero_machine_file m = machine;
    const json_t *run;
    double squares = 0.0;
    size_t i;
    m.share *= share;
    m.tokens *= tokens;
    m.between.bandwidth *= bandwidth;
    json_array_foreach(runs_of("fig4"), i, run)
    {
        const double off = log(time_of_row(run, &m).rate / TERA / number(run, "paper"));
        squares += off * off;
    }
    return squares;
}

TEST(the_machine_is_fitted_to_figure_4_alone)
{
    const double least = squares_of_figure_4(1.0, 1.0, 1.0), other[] = {0.95, 1.05};
    for (int k = 0; k < 2; k++) {
        assert_true(squares_of_figure_4(other[k], 1.0, 1.0) > least);
        assert_true(squares_of_figure_4(1.0, other[k], 1.0) > least);
        assert_true(squares_of_figure_4(1.0, 1.0, other[k] * other[k]) > least);
    }
}

/* Figures 2, 3 and 8 have 28 cells. */
TEST(what_is_predicted_is_off_by_less_than_15_percent_in_the_median)
{
    static const char *const of[] = {"fig2", "fig3", "fig8"};
    int n = 0, near = 0;
    for (int k = 0; k < (int)COUNT(of); k++) {
        n += (int)fact(of[k], "counts/rates");
        near += (int)fact(of[k], "counts/near");
        assert_true(
            fact(of[k], "median_off < 0.2 && (median_off < abs(worst/ratio - 1))") == 1.0);
    }
    assert_int_equal(n, 28);
    assert_true(2 * near > n);
}

TEST(figures_have_the_papers_shapes)
{
    for (test_table t = table_open("paper/shapes.txt"); table_next(&t);)
        if (zero_fact_number(shapes[figure_number(t.field[0])], t.field[1]) != 1.0)
            fail_msg("%s: %s", t.field[0], t.field[1]);
}

/* True if Megatron's rate falls to a third or less when it leaves the node. */
static bool megatron_falls(const zero_machine_file *m)
{
    double inside = time_of_row(named("fig2", "8B", "Megatron"), m).rate;
    return time_of_row(named("fig2", "40B", "Megatron"), m).rate < 0.36 * inside &&
           time_of_row(named("fig2", "100B", "Megatron"), m).rate < 0.2 * inside;
}

/* The counterfactual: it is the link. */
TEST(megatron_falls_where_it_leaves_the_node)
{
    zero_machine_file m = machine;
    static const char *const sizes[] = {"40B", "60B", "80B", "100B", "120B", "140B"};
    assert_true(megatron_falls(&m));
    m.between.bandwidth = m.inside.bandwidth * m.devices;
    m.between.latency = m.inside.latency;
    assert_false(megatron_falls(&m));
    m = machine;
    m.devices = 65536.0;
    for (int i = 0; i < (int)COUNT(sizes); i++) {
        const json_t *run = named("fig2", sizes[i], "Megatron");
        assert_true(time_of_row(run, &m).rate > 2.5 * time_of_row(run, &machine).rate);
    }
}

/* ---- what is shown ---- */

#define TEXT_SIZE 65536

/* The line of a run: its names, devices, MP, batch, and our number and the paper's. */
static void assert_shown(const char *text, int i)
{
    const row *r = &rows[i];
    char line[160];
    double ours = rate_of(run_of(i));
    int n = snprintf(line, sizeof line, "\n  %-5s %-8s %7d %4d %5d", r->size, r->system,
                     r->devices, r->parts, r->batch);
    if (r->paper > 0)
        snprintf(line + n, sizeof line - (size_t)n, " %7.1f %7.1f %6.2f ", ours, r->paper,
                 ours / r->paper);
    else
        snprintf(line + n, sizeof line - (size_t)n,
                 r->paper < 0 ? "%8.1f       -" : "  memory  memory", ours);
    if (!strstr(text, line)) fail_msg("%s lacks%s", r->figure, line);
    const char *note = text_of(run_of(i), "note");
    if (note) assert_non_null(strstr(text, note));
}

TEST(a_terminal_shows_every_cell_and_the_fit)
{
    char text[TEXT_SIZE], words[64];
    for (int k = 0; k < (int)COUNT(names); k++) {
        show(names[k], false, text, TEXT_SIZE);
        assert_fits_a_terminal(text);
        assert_non_null(strstr(text, "v100-dgx2, 2026-11-29: a fit of ours"));
        assert_non_null(strstr(text, "ounterfactual"));
        snprintf(words, sizeof words, "typically off by %.0f %%",
                 100.0 * fact(names[k], "typically_off"));
        if (strstr(text, "typically off")) assert_non_null(strstr(text, words));
        for (int i = 0; i < n_rows; i++)
            if (strcmp(rows[i].figure, names[k]) == 0) assert_shown(text, i);
    }
}

TEST(the_papers_two_nodes_alone_are_shown)
{
    char text[TEXT_SIZE], words[64];
    const json_t *run = named("fig2", "40B", "Megatron");
    json_t *one = zero_paper_with(run, "ranks", 1);
    paper_time alone = time_of_row(one, &machine);
    json_decref(one);
    assert_true(number(run, "model_parallel") == 32);
    snprintf(words, sizeof words, "alone: ours %.1f, in the paper's text about 5",
             alone.rate / TERA);
    show("fig2", false, text, TEXT_SIZE);
    assert_non_null(strstr(text, words));
    assert_true(alone.data == 0.0 && alone.tensor == time_of_row(run, &machine).tensor);
}

TEST(json_holds_every_cell_and_the_counterfactual)
{
    char text[TEXT_SIZE];
    for (int k = 0, i = 0; k < (int)COUNT(names); k++) {
        show(names[k], true, text, TEXT_SIZE);
        json_t *object = json_loads(text, 0, NULL), *cell;
        size_t at;
        assert_true(json_equal(object, trees[k]));
        assert_non_null(zero_fact_at(object, "machine/fit"));
        assert_true(fact(names[k], "count(counterfactual)") > 0);
        json_array_foreach(json_object_get(object, "cells"), at, cell)
        {
            const row *r = &rows[i];
            double ours = zero_fact_number(cell, "ours"),
                   paper = zero_fact_number(cell, "paper");
            assert_string_equal(r->figure, names[k]);
            assert_true(zero_fact_number(cell, "devices") == r->devices);
            assert_true(isnan(paper) == (r->paper <= 0) && isnan(ours) == (r->paper == 0));
            if (r->paper > 0) assert_true(paper == r->paper * TERA);
            if (r->paper != 0) assert_true(ours == time_of_row(run_of(i), &machine).rate);
            i++;
        }
        json_decref(object);
    }
}

int main(void)
{
    return run_here(set_up, tear_down);
}
