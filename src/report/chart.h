/* chart.h - the staircase of memory: bytes live at each instruction of a training step.
 *
 *     28.37 GiB|    oooooo.         ...
 *              | oooooooooooo
 *              |################   ################
 *              |################   ################
 *             0+-------^--------   ------^---------    ^ the peak
 *               fffffffbbbbbbbbu   ffffffbbbbbbbbuu    forward, backward, update
 *
 * Stages stand side by side on one scale, so that the steps between them are seen. */
#pragma once

#include "report/plan_report.h"

#define ZERO_CHART_COLUMNS 80

/* All stages of the report in plain ASCII. A column shows the worst of its instructions.
 * Under each stage stand its peak, where it is, and what it consists of. */
ZERO_NODISCARD zero_status zero_plan_show_chart(const zero_plan_report *report, FILE *out);
