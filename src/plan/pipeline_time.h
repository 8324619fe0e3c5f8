/* pipeline_time.h - how long a step of a pipeline takes on an ideal machine.
 *
 * The programs of all stages are walked together, each with a clock of its own, as in
 * plan_time.h:
 *
 *     FORWARD, BACKWARD   take the stage's seconds for one microbatch
 *     SEND                takes no time, but waits until a message has room
 *     RECEIVE             waits until latency + bytes / bandwidth after SEND began
 *     TIE, REDUCE         2 (n-1) latencies + bytes / bandwidth; TIE waits for all stages
 *
 * Each pair of neighbours has a wire in each direction, so messages delay only later ones
 * on the same wire. Every replica does the same at the same time. Gradients are reduced
 * after the last BACKWARD of their stage. */
#pragma once

#include "plan/pipeline.h"
#include "plan/plan_time.h"

#define ZERO_PIPELINE_ROOM 1 /* messages under way in each direction, as in pipeline.h */

/* Seconds of a stage for one microbatch. */
typedef struct {
    double forward, backward;
} zero_pipe_cost;

typedef struct {
    double step;    /* seconds until all stages have updated */
    double passes;  /* of that: until the last BACKWARD has ended */
    double compute; /* of the stage that computes most */
    /* The share of `passes` in which a stage computes nothing, averaged over the stages:
     * the bubble, and waits for messages. */
    double idle;
} zero_pipeline_time;

/* The seconds of each stage at a rate of `flops` per second: costs[n_stages]. */
void zero_pipeline_costs(const zero_pipeline *p, double flops, zero_pipe_cost *costs);

/* Walks all stages. `room` > 0 messages may be under way in each direction.
 * ZERO_ERR_INVALID, with stage and instruction, if stages wait for each other for ever, or
 * if a stage receives another microbatch than the one it expects; ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_pipeline_walk(const zero_pipeline *p,
                                              const zero_pipe_cost *costs,
                                              const zero_plan_machine *machine, int room,
                                              zero_pipeline_time *time);
