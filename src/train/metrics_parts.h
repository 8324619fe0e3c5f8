/* metrics_parts.h - larger members of the metrics' lines, for metrics.c and metrics_run.c. Each is
 * NULL without memory. */
#pragma once

#include <jansson.h>

#include "engine/ranks.h"
#include "sharding/schedule.h"

/* A number that is not finite is null. */
json_t *zero_metrics_real(double x);

/* "schedule" of the first line. */
json_t *zero_metrics_schedule(const zero_schedule *schedule);

/* "peers" and "rank_seconds" of the last line. */
json_t *zero_metrics_peers(const zero_rank_bytes *bytes, const zero_layout *layout);
json_t *zero_metrics_rank_seconds(const zero_rank_seconds *seconds);
