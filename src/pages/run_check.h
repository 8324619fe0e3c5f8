/* run_check.h - whether the lines of a run are what train/metrics.h describes. */
#pragma once

#include "train/metrics_read.h"

/* The first line, and the last. Errors name path and line. */
ZERO_NODISCARD zero_status zero_run_check(const zero_metrics_file *file);
ZERO_NODISCARD zero_status zero_run_check_step(const char *where, const json_t *step);

/* Instructions of the training step that the first line's schedule has, in order:
 * [{"number", "op", "name", "live": [bytes by zero_class], "bytes": their sum}]. NULL:
 * there is no schedule, or no memory. */
json_t *zero_run_program(const json_t *schedule);
