/* plan_program.h - the programs, one instruction per line. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* The programs of the report's first stage; at most 100 columns. */
void zero_plan_show_programs(const zero_plan_report *report, FILE *out);

/* The bytes that an instruction sends, writes for others to read, or gives back; -1 for others. */
int64_t zero_plan_instruction_bytes(const zero_schedule *s, const zero_instruction *i);
