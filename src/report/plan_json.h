/* plan_json.h - a plan as one JSON object. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "report/plan_report.h"

/* ZERO_ERR_NOMEM. Sizes are bytes. */
ZERO_NODISCARD zero_status zero_plan_show_json(const zero_plan_report *report, FILE *out);

/* A new object: a step of alpha-beta, with the keys of a plan. */
json_t *zero_plan_time_json(const zero_plan_report *report, const zero_plan_time *time);
