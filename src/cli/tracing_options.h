/* tracing_options.h - the values of --trace, --trace-steps and --trace-ranks of a run. */
#pragma once

#include "cli/list.h"
#include "state/trace.h"
#include "train/config.h"

#define ZERO_TRACED_STEPS 3 /* the last ones, unless --trace-steps is given */

/* Everything that can be found wrong without ranks. ZERO_ERR_INVALID. */
ZERO_NODISCARD zero_status zero_tracing_check(const zero_config *config);

/* The window of steps, and the first of them; 0: the last ones of the run. Checked before. */
int64_t zero_tracing_window(const zero_config *config, zero_trace_window *window);

/* ZERO_ERR_INVALID if --trace-ranks names a rank that a job of `ranks` has not. */
ZERO_NODISCARD zero_status zero_tracing_ranks(const zero_config *config, int ranks,
                                              zero_trace_ranks *to);
