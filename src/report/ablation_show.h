/* ablation_show.h - a plan beside plans without one part of it each (--ablation). */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "report/plan_report.h"

/* The report has one stage, and --ablation was asked for. */
void zero_plan_show_ablation(const zero_plan_report *report, FILE *out);
json_t *zero_plan_ablation_json(const zero_ablation *ablation);
