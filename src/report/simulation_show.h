/* simulation_show.h - simulated steps as text. */
#pragma once

#include <stdio.h>

#include "report/simulation_report.h"

#define ZERO_LINK_TEXT 64

/* "adapter of node 3, out" */
void zero_simulation_link(const zero_link_use *link, char text[ZERO_LINK_TEXT]);

/* Prints at most 100 columns: a stage in full, all stages a row each. */
void zero_simulation_show(const zero_simulation_report *report, FILE *out);
