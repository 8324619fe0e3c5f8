/* pipeline.h - pipeline parallelism: the alternative that the ZeRO paper compares with.
 *
 * The model's units are dealt to P pipeline stages, in order: the first stage has the first
 * unit, the last stage the last one, and the units between them are dealt evenly. D
 * replicas of the pipeline share the global batch, so there are D * P ranks: rank s*D + d
 * is stage s of replica d. The program of each stage is a schedule
 * (sharding/writer_pipeline.c).
 *
 * A step's time is that of plan_time.h, with one clock for each stage. SEND and RECEIVE
 * take no time; a message takes latency + bytes / bandwidth from when both have begun, and
 * each content has a wire of its own. Every replica does the same at the same time. */
#pragma once

#include "plan/plan_time.h"

/* The memory and the traffic of one rank of a stage in a step. */
typedef struct {
    size_t at_peak[ZERO_CLASSES]; /* at the moment when all classes together need most */
    size_t states;                /* parameters, gradients, optimizer states */
    int live; /* the most microbatches between their FORWARD and their BACKWARD */
    int64_t activations_sent, gradients_sent, tied_sent, reduced_sent; /* bytes; tied: of
                                                                          the first unit */
} zero_pipe_ledger;

typedef struct {
    zero_schedule schedule; /* owned */
    zero_pipe_ledger ledger;
    zero_plan_time spent; /* by the last walk */
} zero_pipe_stage;

typedef struct {
    zero_pipeline_kind kind;
    int n_stages; /* P */
    /* Of one replica's rank: n_ranks is D, accumulation the microbatches of a pipeline and
     * step. */
    zero_plan_input plan;
    zero_pipe_stage *stages; /* [n_stages], owned */
} zero_pipeline;

/* Compiles the programs, and adds up what they need and move. `plan` is of one replica's
 * rank. ZERO_ERR_INVALID unless there is
 * at least one microbatch and one replica, each stage has a unit other than the model's
 * first and last, so 1 <= P <= units - 2 (1 if there are fewer), and units times
 * microbatches is at most 2^20; ZERO_ERR_NOMEM. Release with zero_pipeline_destroy(). */
ZERO_NODISCARD zero_status zero_pipeline_make(zero_pipeline *p, zero_pipeline_kind kind,
                                              const zero_plan_input *plan, int n_stages);
void zero_pipeline_destroy(zero_pipeline *p); /* accepts a zeroed one */

/* The most stages that a model can be cut into. */
int zero_pipeline_most_stages(const zero_model *model);

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
ZERO_NODISCARD zero_status zero_pipeline_walk(zero_pipeline *p,
                                              const zero_plan_machine *machine,
                                              zero_pipeline_time *time);
