/* cell.h - numbers of a report as people read them: three or four digits and a unit. */
#pragma once

#include <stdint.h>

#define ZERO_CELL 40

/* "-" for numbers that are unknown, in all of them. */
void zero_cell_number(double value, char text[ZERO_CELL]);  /* "6.258" */
void zero_cell_seconds(double value, char text[ZERO_CELL]); /* "72.82 ms" */
void zero_cell_share(double value, char text[ZERO_CELL]);   /* "12.3 %" */
void zero_cell_bytes(double value, char text[ZERO_CELL]);   /* "63.23 MiB" */

/* Figure i of zero_six_figures, number i of zero_four_numbers. */
void zero_cell_figure(int i, double value, char text[ZERO_CELL]);
/* "=" or "DIFFERS" */
const char *zero_cell_equal(int64_t planned, int64_t measured);
