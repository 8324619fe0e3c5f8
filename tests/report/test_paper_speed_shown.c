/* Figures 2, 3, 4 and 8 of the paper as they are shown: every cell, in a terminal and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "report/paper.h"
#include "support/paper_rows.h"

#define TEXT_SIZE 65536

static void show(const char *name, bool json, char text[TEXT_SIZE])
{
    FILE *out = fmemopen(text, TEXT_SIZE, "w");
    assert_non_null(out);
    assert_int_equal(zero_paper_show(name, json, out), ZERO_OK);
    assert_int_equal(fclose(out), 0);
    assert_true(strlen(text) < TEXT_SIZE - 1);
}

/* The line of a run: its names, devices, MP, batch, and our number and the paper's. */
static void assert_shown(const char *text, int i)
{
    const row *r = &rows[i];
    zero_machine_file m = dgx2();
    char line[160];
    double ours = zero_paper_time(run_of(i), &m).rate / TERA;
    int n = snprintf(line, sizeof line, "\n  %-5s %-8s %7d %4d %5d", r->size, r->system,
                     r->devices, r->parts, r->batch);
    if (r->paper > 0)
        snprintf(line + n, sizeof line - (size_t)n, " %7.1f %7.1f %6.2f ", ours, r->paper,
                 ours / r->paper);
    else
        snprintf(line + n, sizeof line - (size_t)n,
                 r->paper < 0 ? "%8.1f       -" : "  memory  memory", ours);
    if (!strstr(text, line)) fail_msg("%s lacks%s", r->figure, line);
}

static void a_terminal_shows_every_cell_and_the_fit(void **state)
{
    (void)state;
    char text[TEXT_SIZE];
    for (int k = 0; k < COUNT(names); k++) {
        show(names[k], false, text);
        assert_non_null(strstr(text, "v100-dgx2, 2026-11-23: a fit of ours"));
        assert_non_null(strstr(text, "ounterfactual"));
        for (int i = 0; i < COUNT(rows); i++)
            if (strcmp(rows[i].figure, names[k]) == 0) {
                assert_shown(text, i);
                if (run_of(i)->note) assert_non_null(strstr(text, run_of(i)->note));
            }
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
            size_t width = strcspn(line, "\n");
            if (width > 100 || (width > 0 && line[width - 1] == ' '))
                fail_msg("%.*s", (int)width, line);
        }
    }
}

static void the_papers_two_nodes_alone_are_shown(void **state)
{
    (void)state;
    char text[TEXT_SIZE], words[64];
    zero_machine_file m = dgx2();
    const zero_paper_run *run = &figure_of("fig2")->runs[5];
    assert_int_equal(run->setup.model_parallel, 32);
    snprintf(words, sizeof words, "alone: ours %.1f, in the paper's text about 5",
             zero_paper_time_alone(run, &m).rate / TERA);
    show("fig2", false, text);
    assert_non_null(strstr(text, words));
    assert_true(zero_paper_time_alone(run, &m).data == 0.0);
    assert_true(zero_paper_time_alone(run, &m).tensor == zero_paper_time(run, &m).tensor);
}

/* JSON and the terminal give one number for how far ours are off. */
static void assert_as_off_as_shown(const char *name, const json_t *object)
{
    char text[TEXT_SIZE], words[64];
    double off = json_real_value(json_object_get(object, "typically_off"));
    snprintf(words, sizeof words, "typically off by %.0f %%", 100.0 * off);
    show(name, false, text);
    if (strstr(text, "typically off")) assert_non_null(strstr(text, words));
}

static void json_holds_every_cell_and_the_counterfactual(void **state)
{
    (void)state;
    char text[TEXT_SIZE];
    zero_machine_file m = dgx2();
    for (int k = 0, i = 0; k < COUNT(names); k++) {
        show(names[k], true, text);
        json_t *object = json_loads(text, 0, NULL), *cell;
        size_t at;
        assert_non_null(object);
        assert_non_null(json_object_get(json_object_get(object, "machine"), "fit"));
        assert_as_off_as_shown(names[k], object);
        assert_true(json_object_get(object, "counterfactual") != NULL &&
                    !json_is_null(json_object_get(object, "counterfactual")));
        json_array_foreach(json_object_get(object, "cells"), at, cell)
        {
            const row *r = &rows[i];
            json_t *ours = json_object_get(cell, "ours"),
                   *paper = json_object_get(cell, "paper");
            assert_string_equal(r->figure, names[k]);
            assert_int_equal(json_integer_value(json_object_get(cell, "devices")),
                             r->devices);
            assert_true(json_is_null(paper) == (r->paper <= 0));
            assert_true(json_is_null(ours) == (r->paper == 0));
            if (r->paper > 0) assert_true(json_real_value(paper) == r->paper * TERA);
            if (r->paper != 0)
                assert_true(json_real_value(ours) == zero_paper_time(run_of(i), &m).rate);
            i++;
        }
        json_decref(object);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_shows_every_cell_and_the_fit),
        cmocka_unit_test(the_papers_two_nodes_alone_are_shown),
        cmocka_unit_test(json_holds_every_cell_and_the_counterfactual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
