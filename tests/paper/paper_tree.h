/* paper_tree.h - the paper's tables and figures, as tests look at them. CMocka's header comes before this
 * one. */
#pragma once

#include "support/test.h"

#include "facts/facts.h"
#include "paper/paper.h"
#include "paper/runs.h"

#define TERA 1e12
static inline zero_machine_file dgx2(void)
{
    zero_machine_file m;
    assert_ok(zero_machine_file_find(ZERO_PAPER_MACHINE, &m));
    return m;
}

/* The tree of a table or figure, which the caller releases. */
static inline json_t *tree_of(const char *name)
{
    json_t *tree;
    assert_ok(zero_paper_facts(name, &tree));
    return tree;
}

/* A figure's runs, whose texts lie in `data`. */
typedef struct {
    json_t *data;
    zero_paper_run runs[ZERO_PAPER_RUNS];
    int n;
} figure;

static inline figure figure_of(const char *name)
{
    figure f = {.data = zero_paper_data(name)};
    assert_non_null(f.data);
    f.n = zero_paper_runs(f.data, f.runs);
    return f;
}

static inline void show(const char *name, bool json, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    assert_non_null(out);
    assert_ok(zero_paper_show(name, json, out));
    assert_int_equal(fclose(out), 0);
    assert_true(strlen(text) < size - 1);
}

/* No line is wider than 100 columns or ends in a blank. */
static inline void assert_fits_a_terminal(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t width = strcspn(line, "\n");
        if (width > 100 || (width > 0 && line[width - 1] == ' '))
            fail_msg("%.*s", (int)width, line);
    }
}
