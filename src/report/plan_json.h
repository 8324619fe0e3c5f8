/* plan_json.h - a plan as one JSON object. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* ZERO_ERR_NOMEM. Sizes are bytes. */
ZERO_NODISCARD zero_status zero_plan_show_json(const zero_plan_report *report, FILE *out);
