/* pipeline.h - the plans of all stages of a pipeline, the alternative that the ZeRO paper
 * compares with (sharding/writer_pipeline.c).
 *
 * A step's time is that of plan_time.h, with one clock for each stage. SEND and RECEIVE
 * take no time; a message takes latency + bytes / bandwidth from when both have begun, and
 * each content has a wire of its own. Every replica does the same at the same time. */
#pragma once

#include "plan/plan.h"
#include "plan/plan_time.h"

typedef struct {
    zero_schedule schedule; /* owned */
    zero_plan_ledger ledger;
    zero_plan_time spent; /* by the last walk */
} zero_pipe_stage;

typedef struct {
    int n_stages;            /* P */
    zero_plan_input plan;    /* of a rank of each */
    zero_pipe_stage *stages; /* [n_stages], owned */
} zero_pipeline;

/* Compiles the programs of the plan's pipeline, and adds up what they need and move. Fails
 * as zero_schedule_compile() does. Release with zero_pipeline_destroy(). */
zero_status zero_pipeline_make(zero_pipeline *p, const zero_plan_input *plan);
void zero_pipeline_destroy(zero_pipeline *p); /* accepts a zeroed one */

/* The most microbatches of a step between their FORWARD and their BACKWARD in a stage. */
int zero_pipeline_live(const zero_schedule *s);

/* In closed form: the microbatches alive on a stage, and the share of time in which ranks
 * are idle if all stages take equal times and messages take none: (P - 1) / (m + P - 1). */
int zero_pipeline_live_formula(zero_pipeline_kind kind, int n_stages, int stage,
                               int microbatches);
double zero_pipeline_bubble_formula(int n_stages, int microbatches);

typedef struct {
    double step;    /* seconds until all stages have updated */
    double passes;  /* of that: until the last BACKWARD has ended */
    double compute; /* of the stage that computes most */
    /* The share of `passes` in which a stage computes nothing, averaged over the stages:
     * the bubble, and waits for messages. */
    double idle;
} zero_pipeline_time;

/* Walks all stages together (plan_time.c). ZERO_ERR_INVALID, with stage and instruction, if
 * stages wait for each other for ever, or if a stage receives another microbatch than the
 * one it expects; ZERO_ERR_NOMEM. */
zero_status zero_pipeline_walk(zero_pipeline *p, const zero_plan_machine *machine,
                               zero_pipeline_time *time);
