/* page_parts.h - the pictures of the page, and what they share. The tables are forms
 * (*.form). */
#pragma once

#include "pages/page.h"

#define ZERO_PAGE_RUNS 6 /* curves that colours and dashes keep apart */

/* Prints a section of a file of forms as HTML; takes over the tree, which may be NULL
 * for lack of memory. */
ZERO_NODISCARD zero_status zero_page_form(const char *file, const char *section,
                                          json_t *tree, FILE *out);
/* "MiB", and its bytes: the unit in which an axis up to so many bytes is labelled. */
const char *zero_page_unit(double bytes, double *unit);

/* Loss, and tokens per second, over the steps: of all runs in one plot. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_curves(const zero_page *page, FILE *out);
/* A row for each rank of a trace, and late ranks. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_timeline(const zero_traced *trace, FILE *out);
/* The staircase of memory of a program that has instructions. */
ZERO_NODISCARD zero_status zero_page_stairs(const json_t *program, FILE *out);
/* A scaling study. */
ZERO_NODISCARD zero_status zero_page_study(json_t *study, FILE *out);
