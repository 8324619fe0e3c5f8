/* plan_stages.h - the stages side by side: a line per quantity, a column per stage. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Prints at most 100 columns for up to four stages. */
void zero_plan_show_stages(const zero_plan_report *report, FILE *out);
