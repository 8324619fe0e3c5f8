/* advice.h - what would fit when a plan does not. */
#pragma once

#include <stdio.h>

#include "sharding/schedule.h"

/* A table of what the plan needs per rank in every stage: as given, with --recompute, with a
 * smaller micro batch, with both, and on more ranks and nodes, up to the first number that helps
 * the plan as given or with --micro-batch 1 --recompute. Bytes are those of zero_plan_needed();
 * a star marks those within `limit`. The table takes about a second for any plan: a deep model's
 * bytes may be bounds from below, which are marked. `is_auto`: collectives follow the nodes. Overwrites
 * zero_last_error(). */
void zero_advice_show(const zero_plan_input *plan, bool is_auto, size_t limit, FILE *out);
