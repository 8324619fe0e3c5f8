/* advice.h - what would fit when a plan does not, and what would spare the network between
 * nodes. */
#pragma once

#include "plan/plan_time.h"

/* The limit that the plan exceeds. */
typedef struct {
    size_t limit;   /* bytes per rank */
    bool of_device; /* of the device's memory, as zero_plan_device_needed() counts */
    size_t host;    /* of_device: bytes of the host's memory, for stars, too; 0: any */
} zero_advice_room;

/* A table of what the plan needs per rank in every stage: as given, with --recompute, with
 * a smaller micro batch, with both, and on more ranks and nodes, up to the first number
 * that helps the plan as given or with --micro-batch 1 --recompute. Bytes are those of
 * zero_plan_needed(), or of the device; a star marks those within the limit. The table
 * takes about a second for any plan: a deep model's bytes may be bounds from below, which
 * are marked. `is_auto`: collectives follow the nodes. Overwrites zero_last_error(). */
void zero_advice_show(const zero_plan_input *plan, bool is_auto, zero_advice_room room,
                      FILE *out);

/* True if a step waits for the network between nodes for more than a twentieth of its time,
 * and replicas, or copies of parameters in the nodes' memory, could change that. */
bool zero_advice_may_spare(const zero_schedule *plan, const zero_plan_time *time);

/* A table of what a rank needs, sends to other nodes and how long a step takes: as given,
 * with --shard-ranks that fit a node, and with --node-parameters. A row that cannot be
 * planned is left out. Overwrites zero_last_error(). */
void zero_advice_show_network(const zero_schedule *plan, const zero_plan_machine *machine,
                              FILE *out);
