/* plan_json_setup.h - what a plan is for, as members of its JSON object. */
#pragma once

#include <jansson.h>

#include "report/plan_report.h"

void zero_plan_put_setup(const zero_plan_report *report, json_t *object);
