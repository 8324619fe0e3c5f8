/* paper.h - the paper's tables and figures next to our numbers.
 *
 * data/ has what the paper prints, one file each: "table1", "table2", "fig1", whose numbers
 * follow from formulas; "fig6", "fig7" (formulas/memory.txt); "fig2", "fig3", "fig4",
 * "fig8", "turing-nlg", "trillion", beside a model of time (formulas/time.txt). "figure2"
 * means "fig2".
 * Sources: Rajbhandari et al., ZeRO, arXiv:1910.02054v3. */
#pragma once

#include "plan/plan_fit.h"

/* The tree that --json prints: every cell, our exact value, the paper's, their difference
 * and how they agree. ZERO_ERR_INVALID names the tables that there are. The caller releases
 * it. */
zero_status zero_paper_facts(const char *name, json_t **facts);

/* Prints the tree, or its form of at most 100 columns. Fails, with nothing printed, as
 * zero_paper_facts() does; the caller checks `out` for write errors. */
zero_status zero_paper_show(const char *name, bool json, FILE *out);

/* How a printed cell agrees with our value. The first of these that holds: "rounded" to the
 * printed decimals, halves upwards; "scaled": rounded for one of N_m ranks, then multiplied
 * by N_m; "truncated" after the printed decimals; "differs". */
typedef struct {
    double printed; /* bytes or parameters */
    double unit;    /* 1e9 or 1e12: what the printed number counts */
    double off;     /* printed / exact - 1 */
    const char *agreement;
} zero_paper_cell;

/* Compares any `exact` with a printed cell: digits, then T (1e12), B or nothing (1e9). */
zero_paper_cell zero_paper_compare(const char *printed, double exact, int model_parallel);

/* What zero's own plan takes for a row of figures 6 and 7: the same model, ranks, batch and
 * stage in fp16, with checkpoints as --recompute, N_m as --tp and P_a as
 * --partition-activations, by messages, because devices have no memory in common.
 * Activations are fp32 here and 16 bits in the paper, so the plan's are twice as large.
 * P_a+cpu is not planned: --offload-activations comes with optimizer states in the file,
 * too. `most` bytes: the deepest model that needs no more, else with most 0 the row's own.
 * Fails as zero_plan_fit() and zero_plan_measure() do. */
zero_status zero_paper_plan(const json_t *row, size_t most, zero_plan_fitted *fitted);
