/* compile_checks.h - plans that cannot be: numbers out of range, and options that exclude
 * each other.
 *
 * A refusal is ZERO_ERR_INVALID, with what was found, what was expected and the remedy.
 * Not collective: all ranks come to the same verdict. */
#pragma once

#include "sharding/schedule.h"

/* Checks all that the input alone decides, before nodes are known. */
ZERO_NODISCARD zero_status zero_check_plan_input(const zero_plan_input *in);

/* If the algorithm shares memory, checks that all shard groups, each of `size` neighbouring
 * data ranks, are spread over nodes alike. */
ZERO_NODISCARD zero_status zero_check_shard_nodes(const zero_plan_input *in,
                                                  const zero_layout *data, int size);
/* With node_parameters, checks that there is node memory. The schedule has its layouts. */
ZERO_NODISCARD zero_status zero_check_node_memory(const zero_schedule *s);
