/* plan_file.h - the scratch file in `zero plan`: what a step moves, and how long it takes. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Bytes read and written per step; nothing without --offload. */
void zero_plan_show_file(const zero_plan_stage *stage, FILE *out);
