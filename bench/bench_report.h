/* bench_report.h - what was measured: a table for people, and the same rows as JSON. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "bench_case.h"
#include "bench_options.h"

typedef struct {
    const char *path; /* borrowed; NULL: no file, and on all ranks but 0 */
    FILE *file;       /* owned */
    json_t *root;     /* owned */
} bench_report;

/* Says where and how this is measured. Collective; ZERO_ERR_IO, everywhere, if there can be
 * no such file. */
ZERO_NODISCARD zero_status bench_report_open(bench_report *report, const bench_clock *clock,
                                             const bench_options *options,
                                             const char *why_rounds);

/* Adds a row, and takes it over. */
ZERO_NODISCARD zero_status bench_report_add(bench_report *report, json_t *row);

/* A number of a row; null if it is none. */
json_t *bench_number(double x);

/* Writes the file. ZERO_ERR_IO. */
ZERO_NODISCARD zero_status bench_report_close(bench_report *report);

/* Mark of a row with fewer than 3 rounds: an indication, no measurement. */
const char *bench_mark(const bench_series *series);
