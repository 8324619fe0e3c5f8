/* plan_program.h - the programs, one instruction per line. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"
#include "sharding/instruction_text.h"

/* The programs of the report's first stage; at most 100 columns. */
void zero_plan_show_programs(const zero_plan_report *report, FILE *out);
