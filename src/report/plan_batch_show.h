/* plan_batch_show.h - the largest micro batch that fits (--fit batch), and the batch it makes. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "report/plan_report.h"

/* The configuration of a run with the stage's largest micro batch; if none fits, both
 * batches are 0. */
zero_config zero_plan_batch_config(const zero_plan_report *report,
                                   const zero_plan_stage *stage);

/* Nothing if --fit batch was not given. */
void zero_plan_show_batch(const zero_plan_report *report, const zero_plan_stage *stage,
                          FILE *out);
json_t *zero_plan_batch_json(const zero_plan_report *report, const zero_plan_stage *stage);
