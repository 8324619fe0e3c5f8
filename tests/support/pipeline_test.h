/* pipeline_test.h - pipelines of a small model, in all shapes. */
#pragma once

#include "support/test.h"

#include "nn/shape.h"
#include "plan/pipeline.h"
#include "zero/status.h"

#define LAYERS 12

static const zero_shape pipeline_shape = {
    .layers = LAYERS, .hidden = 24, .heads = 3, .seq = 16, .vocab = 50, .dropout = 0.1f};

static inline zero_plan_input input(const zero_model *model, int n_stages, int m,
                                    int replicas)
{
    zero_plan_input plan = zero_plan_input_standard(model, replicas, 0);
    plan.pp = n_stages;
    plan.micro_batch = 2;
    plan.accumulation = m;
    plan.check_replicas = 0;
    return plan;
}

static inline void describe(zero_model *model)
{
    assert_ok(zero_model_build(&pipeline_shape, model));
}

static inline void make(zero_pipeline *p, zero_pipeline_kind kind, zero_plan_input in)
{
    in.pp_schedule = kind;
    assert_ok(zero_pipeline_make(p, &in));
}

/* The program of a stage. */
static inline zero_program *step_of(const zero_pipeline *p, int s)
{
    return &p->stages[s].schedule.programs[ZERO_PROGRAM_STEP];
}

/* Both kinds, 1 to LAYERS stages (3 among them), fewer microbatches than stages and
 * more, in all types, with recomputation and without, and several replicas. */
static inline void for_all(void (*check)(const zero_pipeline *p))
{
    const int microbatches[] = {1, 2, 3, 4, 5, 7, 8, 13, 24};
    zero_model model;
    describe(&model);
    for (int kind = 0; kind < ZERO_PIPELINE_KINDS; kind++)
        for (int P = 1; P <= LAYERS; P++)
            for (int k = 0; k < 9; k++) {
                zero_plan_input in = input(&model, P, microbatches[k], 1 + (P + k) % 4);
                zero_pipeline p;
                in.type = k % 2 ? ZERO_BF16 : ZERO_FP32;
                in.recompute = k % 3 == 0;
                make(&p, (zero_pipeline_kind)kind, in);
                check(&p);
                zero_pipeline_destroy(&p);
            }
    zero_model_destroy(&model);
}
