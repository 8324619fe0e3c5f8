/* page_parts.h - the pictures of the page, as facts for its forms (page.form), with places.
 * All are new trees; NULL without memory. */
#pragma once

#include "pages/page.h"

#define ZERO_PAGE_RUNS 6 /* curves that colours and dashes keep apart */

/* Prints a section of page.form as HTML; takes over the tree, which may be NULL for lack of
 * memory. */
zero_status zero_page_form(const char *section, json_t *tree, FILE *out);
/* "MiB", and its bytes: the unit in which an axis up to so many bytes is labelled. */
const char *zero_page_unit(double bytes, double *unit);

/* Loss, and tokens per second, over the steps: of all runs in one plot. */
json_t *zero_page_curves(const zero_page *page);
/* A row for each rank of a trace, and late ranks. */
json_t *zero_page_timeline(const zero_traced *trace);
/* The staircase of memory of a program that has instructions. */
json_t *zero_page_stairs(const json_t *program);
/* A scaling study: its report with "plots". */
json_t *zero_page_study(const json_t *study);
/* Efficiencies of several in one plot; without a "plot" if none is known. */
json_t *zero_page_together(json_t *const *studies, int n);
