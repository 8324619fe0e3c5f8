/* plan_time.h - how long a step takes on an ideal machine: the alpha-beta model.
 *
 *     computing     flops of a unit / rate; backward takes twice its forward
 *     a collective  messages * latency + bytes / bandwidth, the larger of sent and received
 *
 * The step's program is walked with two clocks. The rank computes; one network serves its
 * collectives in the order in which they begin; a wait lasts until its collective has ended. So
 * the time shows everything that follows from the program: what overlaps, what waits for what,
 * and what a step leaves to the next one. Only matrix products take time: sums, the optimizer
 * and disturbances do not. All ranks are equally fast.
 *
 * On several nodes only traffic between nodes counts; latency and bandwidth are those of the
 * network, a rank's share of it. On a single node all traffic counts.
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
    double exposed; /* waiting for the network */
} zero_plan_time;

/* The time of a step among other steps: collectives left in flight delay the next one.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_plan_time_step(const zero_schedule *s,
                                               const zero_plan_machine *machine,
                                               zero_plan_time *time);
