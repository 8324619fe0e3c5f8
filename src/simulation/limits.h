/* limits.h - what a simulation would take, known before it begins. */
#pragma once

#include "simulation/groups.h"
#include "simulation/simulate.h"

typedef struct {
    int64_t messages; /* in all steps */
    int64_t bytes;    /* of memory */
} zero_simulation_cost;

/* Of the stages of a pipeline, or the one of a job without. ZERO_ERR_NOMEM. */
zero_status zero_simulation_cost_of(const zero_actions *stages, const zero_groups *g,
                                    int steps, zero_simulation_cost *cost);

/* ZERO_ERR_INVALID, with both numbers and a remedy, if that is more than the input
 * allows. */
zero_status zero_simulation_check_cost(const zero_schedule *s,
                                       const zero_simulate_input *input,
                                       const zero_simulation_cost *cost);

/* ZERO_ERR_INVALID for an input out of range; ZERO_ERR_UNSUPPORTED for jobs that cannot be
 * simulated. */
zero_status zero_simulation_check(const zero_schedule *s, const zero_simulate_input *input);

/* For refusals before anything is simulated: messages and reads of one collective over all
 * members, and bytes of its packed lists, counted from the lists of a few members. A status
 * of zero_exchanges_add_lists(). */
zero_status zero_exchange_estimate(const zero_collective_spec *spec,
                                   const zero_layout *layout, int64_t *messages,
                                   int64_t *bytes);
