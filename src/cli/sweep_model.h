/* sweep_model.h - what models of time say about a point of a study that is measured.
 *
 * The job is the one that ran: shape, collectives and nodes are those of its metrics, whatever its
 * options left open. */
#pragma once

#include "cli/sweep_options.h"
#include "report/sweep.h"

/* The alpha-beta time on the machine of the options; nothing without one. Errors are the plan's. */
ZERO_NODISCARD zero_status zero_sweep_model_plan(const zero_sweep_options *options,
                                                 zero_sweep_point *point);
