/* plan_setup.h - the part that all pictures of a plan begin with: model, ranks, batch, options. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Prints at most 100 columns. */
void zero_plan_show_setup(const zero_plan_report *report, FILE *out);

/* The same in two lines of 80 columns, for pictures of a step: WHAT "a training step of gpt2, ...". */
void zero_plan_show_title(const zero_plan_report *report, const char *what, FILE *out);
