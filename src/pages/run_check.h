/* run_check.h - whether the lines of a run are what train/metrics.h describes. */
#pragma once

#include "train/metrics_read.h"

/* The first line, and the last. Errors name path and line. */
zero_status zero_run_check(const zero_metrics_file *file);
zero_status zero_run_check_step(const char *where, const json_t *step);

/* Instructions of the training step that the first line's schedule has, in order:
 * [{"number", "op", "name", "live": [bytes by zero_class], "bytes": their sum}]. NULL:
 * there is no schedule, or no memory. */
json_t *zero_run_program(const json_t *schedule);

/* Adds to a run's tree what --json has of the last line, in the order of its keys. */
void zero_run_add_ledgers(json_t *tree);
/* Facts of an entry, beside a name and perhaps a second one. */
json_t *zero_run_pick(const json_t *entry, const char *spec, const char *key,
                      const char *name, const char *second_key, const char *second);
