/* runs.h - the runs of a report, and its forms that are no page: text, CSV, JSON. */
#pragma once

#include <stdio.h>

#include "pages/figures.h"
#include "pages/record.h"
#include "pages/settings.h"

/* All borrowed. The first run is the baseline of comparisons. */
typedef struct {
    const zero_record *records;
    const zero_figures *figures;
    int n;
} zero_runs;

/* For a terminal of 80 columns: one run in full; several side by side. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_runs_print(const zero_runs *runs, FILE *out);

/* Rows of steps, the first of which names the columns: one per run and step. */
void zero_runs_print_csv(const zero_runs *runs, FILE *out);

/* Everything: the keys are in README.md. NULL without memory. */
json_t *zero_runs_describe(const zero_runs *runs);

/* The parts of the text. */
void zero_run_print_head(const zero_record *record, FILE *out);
void zero_run_print(const zero_record *record, const zero_figures *figures, FILE *out);
/* A ledger in short: "13 classes of memory and 3 collectives as planned". */
void zero_run_print_equality(const zero_record *record, FILE *out);
