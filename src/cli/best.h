/* best.h - zero plan --best: the settings of a job that fit, the fastest first.
 *
 *     settings      what the user left open of --stage, --tp, --shard-ranks, ...,
 *                   as words of a command line, so that all checks of one hold
 *     micro batch   of each setting the two largest that fit, of the same global batch
 *     memory        exact: what zero plan would refuse is left out
 *     time          alpha-beta, of each plan that fits; the first five are simulated
 *
 * A job with too many messages is simulated on a part of its nodes, each with the same work:
 * the plan's time then counts as often as the simulated step is of its own plan's. */
#pragma once

#include "cli/plan_options.h"

/* Ten rows, or `json`: their tree. ZERO_ERR_INVALID, with the setting that needs least, if
 * nothing fits. */
zero_status zero_best_show(const zero_plan_options *options, const zero_options *given,
                           FILE *out);
