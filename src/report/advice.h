/* advice.h - what would fit, when a plan does not. */
#pragma once

#include <stdio.h>

#include "sharding/schedule.h"

/* A table of what the plan needs per rank in every stage: as it is, with --recompute, with a
 * smaller micro batch, with both, and on more nodes with as many ranks each, up to the first
 * number that helps: as it is, else with --micro-batch 1 --recompute. Bytes are those of
 * zero_plan_needed(); what is not above `limit` has a star. `is_auto`: collectives follow the
 * nodes. zero_last_error() is lost. */
void zero_advice_show(const zero_plan_input *plan, bool is_auto, size_t limit, FILE *out);
