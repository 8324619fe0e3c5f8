/* plan_show.h - one stage's plan as text: memory, communication, prices, time. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* The report's first stage; at most 100 columns. */
void zero_plan_show(const zero_plan_report *report, FILE *out);

/* The memory alone: classes, the peak and its place, what a rank needs. `context`: bytes that a
 * device's library takes there. */
void zero_plan_show_memory(const zero_schedule *schedule, const zero_plan_ledger *ledger,
                           size_t context, FILE *out);
