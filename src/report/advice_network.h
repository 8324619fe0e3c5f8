/* advice_network.h - what would spare the network between nodes. */
#pragma once

#include <stdio.h>

#include "plan/plan_time.h"

/* True if a step waits for the network between nodes for more than a twentieth of its time, and
 * replicas, or copies of parameters in the nodes' memory, could change that. */
bool zero_advice_may_spare(const zero_schedule *plan, const zero_plan_time *time);

/* A table of what a rank needs, sends to other nodes and how long a step takes: as given, with
 * --shard-ranks that fit a node, and with --node-parameters. A row that cannot be planned is left
 * out. Overwrites zero_last_error(). */
void zero_advice_show_network(const zero_schedule *plan, const zero_plan_machine *machine,
                              FILE *out);
