/* plan_program.h - the programs, one instruction per line. */
#pragma once

#include <stdio.h>

#include "report/legend_show.h"
#include "report/plan_report.h"
#include "sharding/instruction_text.h"

/* One program, and its words. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_plan_show_program(const zero_schedule *s,
                                                  zero_program_kind kind,
                                                  zero_legend *legend, FILE *out);

/* The programs of the report's first stage, in at most 100 columns, and a legend.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_plan_show_programs(const zero_plan_report *report,
                                                   FILE *out);
