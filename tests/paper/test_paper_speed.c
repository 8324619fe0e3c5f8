/* Figures 2, 3, 4 and 8 of the paper beside the model of time: every cell is there, and the shapes are
 * the paper's. */

#define TEST_HAS_MAIN
#include "paper/paper_tree.h"

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
static json_t *figures[COUNT(names)]; /* their data */
static json_t *trees[COUNT(names)];
static zero_machine_file machine;

static int set_up(void **state)
{
    (void)state;
    read_rows();
    machine = dgx2();
    for (int k = 0; k < (int)COUNT(names); k++) {
        figures[k] = zero_paper_data(names[k]);
        trees[k] = tree_of(names[k]);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int k = 0; k < (int)COUNT(names); k++) {
        json_decref(figures[k]);
        json_decref(trees[k]);
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

static double bytes_of(const json_t *run)
{
    paper_setup s = setup_of_row(run);
    return memory_of(&s).all;
}

static double rate(const char *of, const char *size, const char *system)
{
    return rate_of(named(of, size, system));
}

static bool is_zero(const json_t *run)
{
    return strcmp(text_of(run, "system"), "ZeRO") == 0;
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

TEST(speed_ups_and_totals_are_the_papers)
{
    static const double ups[] = {1.15, 1.6, 7.2, 5.7, 7.2, 10.2, 7.4, 6.9, 9.3};
    static const double totals[] = {1642, 4806, 9994, 14635};
    static const double linear[] = {1642, 3283, 6567, 10260};
    for (int i = 0; i < (int)COUNT(ups); i++)
        assert_true(number(json_array_get(runs_of("fig2"), 2 * (size_t)i), "speed_up") ==
                    ups[i]);
    for (int i = 0; i < (int)COUNT(totals); i++) {
        const json_t *run = json_array_get(runs_of("fig3"), (size_t)i);
        assert_true(number(run, "total") == totals[i]);
        assert_true(number(run, "linear") == linear[i]);
    }
}

/* ZeRO is P_os+g, Megatron and DDP keep whole states; figure 8 is table 3. */
TEST(systems_have_their_stages)
{
    static const int stages[] = {1, 1, 2, 2, 2};
    for (int i = 0; i < n_rows; i++) {
        const json_t *run = run_of(i);
        const char *system = text_of(run, "system");
        int expected = is_zero(run) ? 2 : 0;
        if (system[0] == 'C') expected = stages[system[1] - '1'];
        if (strcmp(text_of(run, "model"), "1T") == 0) expected = 3;
        assert_true(number(run, "stage") == expected);
    }
    assert_string_equal(text_of(named("fig2", "170B", "ZeRO"), "keep"), "cpu");
}

TEST(what_the_paper_ran_fits_and_what_it_could_not_does_not)
{
    for (int i = 0; i < n_rows; i++) {
        bool fits = bytes_of(run_of(i)) <= 32e9;
        if (fits != (rows[i].paper != 0)) fail_msg("%s %s", rows[i].figure, rows[i].size);
    }
}

TEST(a_cell_that_is_far_off_is_explained)
{
    for (int i = 0; i < n_rows; i++) {
        const json_t *run = run_of(i);
        if (rows[i].paper <= 0) continue;
        double off = fabs(rate_of(run) / rows[i].paper - 1.0);
        if ((off > ZERO_PAPER_NEAR) != (text_of(run, "note") != NULL))
            fail_msg("%s %s %s is off by %.3f", rows[i].figure, rows[i].size,
                     rows[i].system, off);
    }
}

TEST(most_cells_are_near)
{
    double cells = 0, near = 0;
    for (int k = 0; k < (int)COUNT(names); k++) {
        cells += fact(names[k], "counts/rates");
        near += fact(names[k], "counts/near");
        assert_true(fact(names[k], "typically_off") < 0.285);
    }
    assert_true(cells == 40 && near >= 29);
}

/* ---- the shapes ---- */

TEST(zero_is_flat_at_30_and_more_up_to_100b)
{
    static const char *const sizes[] = {"1.5B", "8B", "40B", "60B", "80B", "100B"};
    for (int i = 0; i < (int)COUNT(sizes); i++) {
        double r = rate("fig2", sizes[i], "ZeRO");
        if (r < 30.0 || r > 42.0) fail_msg("%s: %.1f", sizes[i], r);
    }
    assert_true(rate("fig2", "100B", "ZeRO") > rate("fig2", "120B", "ZeRO"));
    assert_true(rate("fig2", "120B", "ZeRO") > rate("fig2", "140B", "ZeRO"));
    assert_true(rate("fig2", "140B", "ZeRO") > rate("fig2", "170B", "ZeRO"));
}

/* True if Megatron's rate falls to a third or less when it leaves the node. */
static bool megatron_falls(const zero_machine_file *m)
{
    double inside = time_of_row(named("fig2", "8B", "Megatron"), m).rate;
    return time_of_row(named("fig2", "40B", "Megatron"), m).rate < 0.36 * inside &&
           time_of_row(named("fig2", "100B", "Megatron"), m).rate < 0.2 * inside;
}

TEST(megatron_falls_where_it_leaves_the_node)
{
    zero_machine_file m = machine;
    static const char *const sizes[] = {"40B", "60B", "80B", "100B", "120B", "140B"};
    double sum = 0.0;
    for (int i = 0; i < (int)COUNT(sizes); i++) sum += rate("fig2", sizes[i], "Megatron");
    assert_true(fabs(sum / (int)COUNT(sizes) - 5.0) < 0.5); /* the paper: about 5 */
    assert_true(rate("fig2", "40B", "Megatron") < 8.0);
    assert_true(megatron_falls(&m));
    /* The counterfactual: it is the link. */
    m.between.bandwidth = m.inside.bandwidth * m.devices;
    m.between.latency = m.inside.latency;
    assert_false(megatron_falls(&m));
    m = dgx2();
    for (int i = 0; i < (int)COUNT(sizes); i++) {
        const json_t *run = named("fig2", sizes[i], "Megatron");
        zero_machine_file inside = m;
        inside.devices = 65536.0;
        double faster = time_of_row(run, &inside).rate / time_of_row(run, &m).rate;
        assert_true(faster > 2.5);
    }
}

TEST(speed_ups_rise_from_1_to_10)
{
    const json_t *runs = runs_of("fig2");
    double last = 1.0;
    for (size_t i = 0; i <= 10; i += 2) { /* to 100B */
        double up = rate_of(json_array_get(runs, i)) / rate_of(json_array_get(runs, i + 1));
        assert_true(up > last);
        last = up;
    }
    assert_true(last > 9.0 && last < 11.0);
}

/* Batches: the paper's, what the first run takes, all of the device, the first run's. */
TEST(batches_that_grow_scale_beyond_linear_and_one_for_all_does_not)
{
    assert_true(fact("fig3", "count(counterfactual)") == 4);
    double times[4][4], batch[4][4];
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 4; i++) {
            char path[60];
            snprintf(path, sizeof path, "counterfactual/%d/runs/%d", k, i);
            const json_t *at = zero_fact_at(trees[figure_number("fig3")], path);
            assert_true(fabs(zero_fact_number(at, "total / rate / devices") - 1.0) < 1e-12);
            times[k][i] = zero_fact_number(at, "times_linear");
            batch[k][i] = zero_fact_number(at, "batch");
        }
    for (int i = 1; i < 4; i++) {
        assert_true(times[0][i] > 1.15 && times[1][i] > 1.15);
        assert_true(batch[1][i] > batch[1][i - 1] && times[2][i] > times[2][i - 1]);
        assert_true(times[3][i] <= times[3][i - 1] && times[3][i] < 1.0 &&
                    batch[3][i] == 16);
    }
    assert_true(batch[1][0] == 16 && batch[1][1] == 48); /* as the paper's */
}

TEST(only_zero_reaches_13b_without_model_parallelism)
{
    for (size_t i = 0; i < json_array_size(runs_of("fig4")); i++) {
        const json_t *run = json_array_get(runs_of("fig4"), i);
        char path[60];
        snprintf(path, sizeof path, "counterfactual/%zu", i);
        const json_t *whole = zero_fact_at(trees[figure_number("fig4")], path);
        assert_true(number(run, "model_parallel") == 1);
        assert_true((zero_fact_number(whole, "bytes_without_zero") <= machine.memory) ==
                    !is_zero(run));
        assert_true(zero_fact_number(whole, "largest_without_zero > 1.38e9") == 1.0);
        assert_true(zero_fact_number(whole, "largest_without_zero < 2e9") == 1.0);
        if (is_zero(run) && strcmp(text_of(run, "model"), "13B") != 0)
            assert_true(rate_of(run) > 30);
    }
    assert_true(rate("fig4", "13B", "ZeRO") < 27.0);
    assert_true(rate("fig4", "1.38B", "DDP") < 20.0);
}

TEST(configurations_rise_with_the_batch_that_their_memory_leaves)
{
    double rates[5];
    for (size_t i = 0; i < 5; i++) rates[i] = rate_of(json_array_get(runs_of("fig8"), i));
    for (int i = 1; i < 4; i++) assert_true(rates[i] > rates[i - 1]);
    assert_true(rates[4] < rates[3]);
    for (int i = 1; i < 5; i++) {
        char same[80];
        snprintf(same, sizeof same, "counterfactual/%d/with_first_batch / cells/0/ours", i);
        if (fabs(fact("fig8", same) - 1.0) > 0.03)
            fail_msg("C%d: %.3f of C1", i + 1, fact("fig8", same));
    }
}

/* The most samples with which the run fits if it is cut so. */
static int batch_among(const json_t *run, int parts, int stage)
{
    json_t *cut = zero_paper_cut_among(run, parts, stage, &machine);
    int batch = (int)number(cut, "batch");
    json_decref(cut);
    return batch;
}

TEST(turing_nlgs_rate_is_in_reach_of_p_os_g_alone)
{
    const json_t *run = named("turing-nlg", "17B", "ZeRO");
    json_t *two = zero_paper_cut_among(run, 2, 2, &machine);
    json_t *more = zero_paper_with(two, "batch", (int64_t)number(two, "batch") + 1);
    assert_true(fabs(rate_of(two) - 41.4) < 2.0);
    assert_true(bytes_of(two) <= 32e9 && bytes_of(more) > 32e9);
    for (int parts = 1; parts <= 4; parts *= 2)
        assert_int_equal(batch_among(run, parts, 0), 0);
    json_decref(two);
    json_decref(more);
}

TEST(a_trillion_fits_1024_devices_with_p_os_g_p)
{
    const json_t *run = named("trillion", "1T", "ZeRO");
    assert_true(fabs(fact("trillion", "counterfactual/state_bytes") - 15.625e9) < 1.0);
    assert_true(fabs(fact("trillion", "counterfactual/days") - 139.58) < 0.01);
    for (int parts = 1; parts <= 16; parts *= 2) {
        assert_true(batch_among(run, parts, 3) > 0);
        assert_int_equal(batch_among(run, parts, 2), 0);
        assert_int_equal(batch_among(run, parts, 0), 0);
    }
    assert_int_equal(batch_among(run, 256, 0), 0);
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
        assert_non_null(strstr(text, "v100-dgx2, 2026-11-23: a fit of ours"));
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
