/* bench_report.h - results: a table for people, and the same rows as JSON. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "bench_case.h"
#include "bench_options.h"

typedef struct {
    const char *path; /* borrowed; NULL without a file, and on all ranks but 0 */
    FILE *file;       /* owned */
    json_t *root;     /* owned */
} bench_report;

/* Prints the machine and the method, and opens the file. Collective; ZERO_ERR_IO, on all ranks,
 * if the file cannot be written. */
zero_status bench_report_open(bench_report *report, const bench_clock *clock,
                              const bench_options *options, const char *why_rounds);

/* Adds a row, and owns it from then on. */
zero_status bench_report_add(bench_report *report, json_t *row);

/* A number of a row; null if it is not finite. */
json_t *bench_number(double x);

/* Prints a number in the format "%*.2f" with this width; "-" if it is not finite. */
void bench_print_number(const char *format, int width, double x);

/* Writes the file. ZERO_ERR_IO. */
zero_status bench_report_close(bench_report *report);

/* "*" for fewer than 3 rounds, which are only an indication; else "". */
const char *bench_mark(const bench_series *series);
