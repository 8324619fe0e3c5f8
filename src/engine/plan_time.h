/* plan_time.h - how long a step takes on an ideal machine: the alpha-beta model.
 *
 *     computing     flops of a unit / rate; backward takes twice its forward
 *     a collective  messages * latency + bytes / bandwidth, the larger of sent and received
 *
 * The step's program is walked with two clocks. The rank computes; one network serves its
 * collectives in the order in which they begin; a wait stands still until its collective has
 * ended. What follows from the program alone is therefore seen: what overlaps, what waits for
 * what, and what a step leaves to the next one. Only products of matrices take time: no sums,
 * no optimizer, no disturbance. Other ranks are taken to be as fast as this one.
 *
 * Of a collective counts what leaves the node, if there are several: then latency and
 * bandwidth are the network's, a rank's share of it. On a single node everything counts.
 * Source: Hockney 1994, "The communication challenge for MPP". */
#pragma once

#include "sharding/schedule.h"

typedef struct {
    double latency;   /* seconds per message, >= 0 */
    double bandwidth; /* bytes per second and direction, of one rank, > 0 */
    double flops;     /* per second, of one rank, > 0 */
} zero_plan_machine;

typedef struct {
    double step; /* seconds; compute + exposed */
    double compute, communication;
    double exposed; /* in which the rank waits for the network */
} zero_plan_time;

/* A step among other steps: what one leaves in flight delays the next. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_plan_time_step(const zero_schedule *s,
                                               const zero_plan_machine *machine,
                                               zero_plan_time *time);
