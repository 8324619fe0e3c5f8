/* Figures 2, 3, 4 and 8 of the paper beside the model of time: every cell is there, and the shapes are
 * the paper's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/paper_rows.h"

static const zero_paper_run *named(const char *figure, const char *size, const char *system)
{
    const zero_paper_figure *f = figure_of(figure);
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->runs[i].size, size) == 0 && strcmp(f->runs[i].system, system) == 0)
            return &f->runs[i];
    fail_msg("%s has no %s %s", figure, size, system);
    return NULL;
}

static double rate(const char *figure, const char *size, const char *system)
{
    zero_machine_file m = dgx2();
    return zero_paper_time(named(figure, size, system), &m).rate / TERA;
}

static bool is_zero(const zero_paper_run *run)
{
    return strcmp(run->system, "ZeRO") == 0;
}

/* ---- the cells ---- */

static void every_run_of_the_paper_is_there(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; i < COUNT(rows); i++) {
        const row *r = &rows[i];
        const zero_paper_run *run = run_of(i);
        const zero_paper_setup *s = &run->setup;
        assert_string_equal(run->size, r->size);
        assert_string_equal(run->system, r->system);
        assert_int_equal(zero_paper_devices(s), r->devices);
        assert_int_equal(s->model_parallel, r->parts);
        assert_int_equal(s->shape.layers, r->layers);
        assert_int_equal(s->shape.hidden, r->hidden);
        assert_int_equal(s->shape.heads, r->heads);
        assert_int_equal(s->batch, r->batch);
        assert_int_equal(s->batch * s->n_ranks, r->total);
        assert_true(run->paper == r->paper);
    }
    for (int k = 0; k < COUNT(names); k++) n += figure_of(names[k])->n;
    assert_int_equal(n, COUNT(rows));
}

static void speed_ups_and_totals_are_the_papers(void **state)
{
    (void)state;
    static const double ups[] = {1.15, 1.6, 7.2, 5.7, 7.2, 10.2, 7.4, 6.9, 9.3};
    static const double totals[] = {1642, 4806, 9994, 14635};
    static const double linear[] = {1642, 3283, 6567, 10260};
    for (int i = 0; i < COUNT(ups); i++)
        assert_true(figure_of("fig2")->runs[2 * i].speed_up == ups[i]);
    for (int i = 0; i < COUNT(totals); i++) {
        assert_true(figure_of("fig3")->runs[i].total == totals[i]);
        assert_true(figure_of("fig3")->runs[i].linear == linear[i]);
    }
}

/* ZeRO is P_os+g, Megatron and DDP keep whole states; figure 8 is table 3. */
static void systems_have_their_stages(void **state)
{
    (void)state;
    static const int stages[] = {1, 1, 2, 2, 2};
    for (int i = 0; i < COUNT(rows); i++) {
        const zero_paper_run *run = run_of(i);
        int expected = is_zero(run) ? 2 : 0;
        if (run->system[0] == 'C') expected = stages[run->system[1] - '1'];
        if (strcmp(run->size, "1T") == 0) expected = 3;
        assert_int_equal(run->setup.stage, expected);
    }
    assert_int_equal(named("fig2", "170B", "ZeRO")->setup.keep, ZERO_PAPER_KEEP_IN_CPU);
}

static void what_the_paper_ran_fits_and_what_it_could_not_does_not(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(rows); i++) {
        bool fits = zero_paper_memory_of(&run_of(i)->setup).all <= 32e9;
        if (fits != (rows[i].paper != 0)) fail_msg("%s %s", rows[i].figure, rows[i].size);
    }
}

static void a_cell_that_is_far_off_is_explained(void **state)
{
    (void)state;
    zero_machine_file m = dgx2();
    for (int i = 0; i < COUNT(rows); i++) {
        const zero_paper_run *run = run_of(i);
        if (run->paper <= 0) continue;
        double off = fabs(zero_paper_time(run, &m).rate / TERA / run->paper - 1.0);
        if ((off > ZERO_PAPER_NEAR) != (run->note != NULL))
            fail_msg("%s %s %s is off by %.3f", rows[i].figure, run->size, run->system,
                     off);
    }
}

static void most_cells_are_near(void **state)
{
    (void)state;
    zero_machine_file m = dgx2();
    int cells = 0, near = 0;
    for (int k = 0; k < COUNT(names); k++) {
        zero_paper_closeness c = zero_paper_compare_runs(figure_of(names[k]), &m);
        cells += c.cells;
        near += c.near;
        assert_true(c.typical < 0.25);
    }
    assert_int_equal(cells, 40);
    assert_true(near >= 29);
}

/* ---- the shapes ---- */

static void zero_is_flat_at_30_and_more_up_to_100b(void **state)
{
    (void)state;
    static const char *const sizes[] = {"1.5B", "8B", "40B", "60B", "80B", "100B"};
    for (int i = 0; i < COUNT(sizes); i++) {
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
    double inside = zero_paper_time(named("fig2", "8B", "Megatron"), m).rate;
    return zero_paper_time(named("fig2", "40B", "Megatron"), m).rate < 0.36 * inside &&
           zero_paper_time(named("fig2", "100B", "Megatron"), m).rate < 0.2 * inside;
}

static void megatron_falls_where_it_leaves_the_node(void **state)
{
    (void)state;
    zero_machine_file m = dgx2();
    static const char *const sizes[] = {"40B", "60B", "80B", "100B", "120B", "140B"};
    double sum = 0.0;
    for (int i = 0; i < COUNT(sizes); i++) sum += rate("fig2", sizes[i], "Megatron");
    assert_true(fabs(sum / COUNT(sizes) - 5.0) < 0.5); /* the paper: about 5 */
    assert_true(rate("fig2", "40B", "Megatron") < 8.0);
    assert_true(megatron_falls(&m));
    /* The counterfactual: it is the link. */
    m.between.bandwidth = m.inside.bandwidth * m.devices;
    m.between.latency = m.inside.latency;
    assert_false(megatron_falls(&m));
    m = dgx2();
    for (int i = 0; i < COUNT(sizes); i++) {
        const zero_paper_run *run = named("fig2", sizes[i], "Megatron");
        double faster =
            zero_paper_time_inside(run, &m).rate / zero_paper_time(run, &m).rate;
        assert_true(faster > 2.5);
    }
}

static void speed_ups_rise_from_1_to_10(void **state)
{
    (void)state;
    const zero_paper_figure *f = figure_of("fig2");
    zero_machine_file m = dgx2();
    double last = 1.0;
    for (int i = 0; i <= 10; i += 2) { /* to 100B */
        double up = zero_paper_time(&f->runs[i], &m).rate /
                    zero_paper_time(&f->runs[i + 1], &m).rate;
        assert_true(up > last);
        last = up;
    }
    assert_true(last > 9.0 && last < 11.0);
}

static void batches_that_grow_scale_beyond_linear_and_one_for_all_does_not(void **state)
{
    (void)state;
    const zero_paper_figure *f = figure_of("fig3");
    zero_machine_file m = dgx2();
    zero_paper_scaling s[ZERO_PAPER_BATCHES][4];
    for (int k = 0; k < ZERO_PAPER_BATCHES; k++) {
        zero_paper_scale(f, (zero_paper_batch)k, &m, s[k]);
        for (int i = 0; i < 4; i++) {
            zero_paper_scaling *at = &s[k][i];
            assert_true(fabs(at->total / at->rate / at->devices - 1.0) < 1e-12);
            double linear = s[k][0].total * at->devices / s[k][0].devices;
            assert_true(fabs(at->total / linear / at->times_linear - 1.0) < 1e-12);
        }
    }
    for (int i = 1; i < 4; i++) {
        assert_true(s[ZERO_PAPER_OWN_BATCH][i].times_linear > 1.15);
        assert_true(s[ZERO_PAPER_LEFT_BATCH][i].times_linear > 1.15);
        assert_true(s[ZERO_PAPER_LEFT_BATCH][i].batch >
                    s[ZERO_PAPER_LEFT_BATCH][i - 1].batch);
        assert_true(s[ZERO_PAPER_FULL_BATCH][i].times_linear >
                    s[ZERO_PAPER_FULL_BATCH][i - 1].times_linear);
        assert_true(s[ZERO_PAPER_FIXED_BATCH][i].times_linear <=
                    s[ZERO_PAPER_FIXED_BATCH][i - 1].times_linear);
        assert_true(s[ZERO_PAPER_FIXED_BATCH][i].times_linear < 1.0);
        assert_int_equal(s[ZERO_PAPER_FIXED_BATCH][i].batch, 16);
    }
    assert_int_equal(s[ZERO_PAPER_LEFT_BATCH][0].batch, 16);
    assert_int_equal(s[ZERO_PAPER_LEFT_BATCH][1].batch, 48); /* as the paper's */
}

static void only_zero_reaches_13b_without_model_parallelism(void **state)
{
    (void)state;
    const zero_paper_figure *f = figure_of("fig4");
    zero_machine_file m = dgx2();
    for (int i = 0; i < f->n; i++) {
        const zero_paper_run *run = &f->runs[i];
        zero_paper_setup whole = zero_paper_without_zero(run);
        assert_int_equal(run->setup.model_parallel, 1);
        assert_true((zero_paper_memory_of(&whole).all <= m.memory) == !is_zero(run));
        double largest = zero_paper_largest_without_zero(run, &m);
        assert_true(largest > 1.38e9 && largest < 2e9);
        if (is_zero(run) && strcmp(run->size, "13B") != 0)
            assert_true(zero_paper_time(run, &m).rate > 30 * TERA);
    }
    assert_true(rate("fig4", "13B", "ZeRO") < 27.0);
    assert_true(rate("fig4", "1.38B", "DDP") < 20.0);
}

static void configurations_rise_with_the_batch_that_their_memory_leaves(void **state)
{
    (void)state;
    const zero_paper_figure *f = figure_of("fig8");
    zero_machine_file m = dgx2();
    for (int i = 1; i < 4; i++)
        assert_true(zero_paper_time(&f->runs[i], &m).rate >
                    zero_paper_time(&f->runs[i - 1], &m).rate);
    assert_true(zero_paper_time(&f->runs[4], &m).rate <
                zero_paper_time(&f->runs[3], &m).rate);
    for (int i = 1; i < 5; i++) {
        double same = zero_paper_time_first_batch(f, i, &m).rate /
                      zero_paper_time(&f->runs[0], &m).rate;
        if (fabs(same - 1.0) > 0.03) fail_msg("C%d: %.3f of C1", i + 1, same);
    }
}

static void turing_nlgs_rate_is_in_reach_of_p_os_g_alone(void **state)
{
    (void)state;
    zero_machine_file m = dgx2();
    const zero_paper_run *run = &figure_of("turing-nlg")->runs[0];
    zero_paper_run two = zero_paper_cut_among(run, 2, 2, &m);
    assert_true(fabs(zero_paper_time(&two, &m).rate / TERA - 41.4) < 2.0);
    assert_true(zero_paper_memory_of(&two.setup).all <= 32e9);
    two.setup.batch++;
    assert_true(zero_paper_memory_of(&two.setup).all > 32e9);
    for (int parts = 1; parts <= 4; parts *= 2)
        assert_int_equal(zero_paper_cut_among(run, parts, 0, &m).setup.batch, 0);
}

static void a_trillion_fits_1024_devices_with_p_os_g_p(void **state)
{
    (void)state;
    zero_machine_file m = dgx2();
    const zero_paper_run *run = &figure_of("trillion")->runs[0];
    zero_paper_estimates e = zero_paper_estimate(run, &m);
    assert_true(fabs(e.states - 15.625e9) < 1.0);
    assert_true(fabs(e.days - 139.58) < 0.01);
    for (int parts = 1; parts <= 16; parts *= 2) {
        assert_true(zero_paper_cut_among(run, parts, 3, &m).setup.batch > 0);
        assert_int_equal(zero_paper_cut_among(run, parts, 2, &m).setup.batch, 0);
        assert_int_equal(zero_paper_cut_among(run, parts, 0, &m).setup.batch, 0);
    }
    assert_int_equal(zero_paper_cut_among(run, 256, 0, &m).setup.batch, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_run_of_the_paper_is_there),
        cmocka_unit_test(speed_ups_and_totals_are_the_papers),
        cmocka_unit_test(systems_have_their_stages),
        cmocka_unit_test(what_the_paper_ran_fits_and_what_it_could_not_does_not),
        cmocka_unit_test(a_cell_that_is_far_off_is_explained),
        cmocka_unit_test(most_cells_are_near),
        cmocka_unit_test(zero_is_flat_at_30_and_more_up_to_100b),
        cmocka_unit_test(megatron_falls_where_it_leaves_the_node),
        cmocka_unit_test(speed_ups_rise_from_1_to_10),
        cmocka_unit_test(batches_that_grow_scale_beyond_linear_and_one_for_all_does_not),
        cmocka_unit_test(only_zero_reaches_13b_without_model_parallelism),
        cmocka_unit_test(configurations_rise_with_the_batch_that_their_memory_leaves),
        cmocka_unit_test(turing_nlgs_rate_is_in_reach_of_p_os_g_alone),
        cmocka_unit_test(a_trillion_fits_1024_devices_with_p_os_g_p),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
