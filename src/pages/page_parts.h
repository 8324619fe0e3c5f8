/* page_parts.h - the sections of the page, in the order in which they are read.
 *
 * Each is complete: heading, picture, its numbers as a table, or why there is nothing to show. */
#pragma once

#include <stdio.h>

#include "pages/page_input.h"

#define ZERO_PAGE_RUNS 6 /* curves that colours and dashes keep apart */

/* A run: in a line what it is, with notes; six figures; what else it was; later on four numbers with
 * their definitions. */
void zero_page_head(const zero_record *record, FILE *out);
void zero_page_figures(const zero_figures *figures, FILE *out);
void zero_page_facts(const zero_record *record, FILE *out);
void zero_page_numbers(const zero_figures *figures, FILE *out);
/* A short name of a run: the last part of its path. */
const char *zero_page_name(const zero_record *record);

/* Loss, and tokens per second, over the steps: of all runs in one plot. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_curves(const zero_page *page, FILE *out);

/* A row for each rank of a trace; NULL: says how to get one. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_timeline(const zero_traced *trace, FILE *out);

/* Ranks that began collectives last, of all steps of the trace. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_late(const zero_traced *trace, FILE *out);

/* The staircase of memory, and classes planned and measured. */
void zero_page_memory(const zero_record *record, FILE *out);
/* Bytes from rank to rank, and collectives planned and counted. */
void zero_page_traffic(const zero_record *record, FILE *out);
/* Instructions: seconds of rank 0, least and most of all ranks. */
void zero_page_profile(const zero_record *record, FILE *out);

/* Figures side by side, and the settings in which runs differ. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_page_compare(const zero_page *page, FILE *out);
/* Efficiency of scaling studies. */
void zero_page_study(const zero_study *study, FILE *out);
