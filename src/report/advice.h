/* advice.h - what would fit when a plan does not. */
#pragma once

#include <stdio.h>

#include "sharding/schedule.h"

/* The limit that the plan exceeds. */
typedef struct {
    size_t limit;   /* bytes per rank */
    bool of_device; /* of the device's memory, as zero_plan_device_needed() counts */
    size_t host;    /* of_device: bytes of the host's memory, for stars, too; 0: any */
} zero_advice_room;

/* A table of what the plan needs per rank in every stage: as given, with --recompute, with a
 * smaller micro batch, with both, and on more ranks and nodes, up to the first number that helps
 * the plan as given or with --micro-batch 1 --recompute. Bytes are those of zero_plan_needed(), or of
 * the device; a star marks those within the limit. The table takes about a second for any plan: a
 * deep model's bytes may be bounds from below, which are marked. `is_auto`: collectives follow the
 * nodes. Overwrites zero_last_error(). */
void zero_advice_show(const zero_plan_input *plan, bool is_auto, zero_advice_room room,
                      FILE *out);
