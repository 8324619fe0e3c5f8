/* engine.h - a model in training: its schedule, its memory, its steps.
 *
 * Everything is decided by init, from the plan; a step only walks a program. Several engines
 * can live in one process. Functions are collective over the engine's ranks unless they say
 * otherwise, and give every rank the same result. */
#pragma once

#include "train/digest.h"
#include "train/run.h"

typedef struct {
    zero_plan_input plan; /* plan.n_ranks is the size of the group */
    const zero_backend *backend;
    int64_t seed;         /* of the initial weights */
    int64_t eval_batches; /* global batches that one evaluation averages over */
    size_t memory_limit;  /* bytes that this rank may take; 0: no limit */
    bool may_use_p2p; /* where a node cannot share memory: instead of plan.collectives */
} zero_engine_spec;

typedef struct {
    zero_engine_spec spec;
    zero_schedule schedule;
    zero_window window; /* zeroed if nothing is shared */
    zero_runner runner;
    char why_p2p[512];   /* the reason, if p2p was taken instead; else empty */
    double *eval_losses; /* by microbatch index; owned */
    int64_t adam_steps;  /* updates made so far: Adam's t is the next */
} zero_engine;

typedef struct {
    int64_t step; /* from 0: what the source and dropout are asked for */
    double lr, beta1, beta2, eps, weight_decay, clip;
} zero_step_input;

typedef struct {
    int64_t step; /* of the random numbers: same step, same text */
    int64_t seed;
    double temperature; /* > 0 */
    int64_t known;      /* at most V: ids from here on are never drawn */
} zero_sampling;

/* Compiles, allocates, initialises the weights. The model and comm are borrowed, and the
 * engine must stay where it is: callbacks hold its address. */
ZERO_NODISCARD zero_status zero_engine_init(zero_engine *e, const zero_engine_spec *spec,
                                            zero_comm *comm);
void zero_engine_destroy(zero_engine *e); /* accepts a zeroed engine; local */

/* One optimizer step on the source's step. ZERO_ERR_DIVERGED, with nothing updated, if a
 * gradient is not finite. */
ZERO_NODISCARD zero_status zero_engine_step(zero_engine *e, const zero_source *source,
                                            const zero_step_input *in,
                                            zero_run_output *out);

/* Mean loss, nats per token, over samples 0, 1, ... of the source's step 0. */
ZERO_NODISCARD zero_status zero_engine_evaluate(zero_engine *e, const zero_source *source,
                                                double *loss);

/* Appends n drawn tokens to the n_known > 0 that text[n_known + n] begins with. The model sees
 * at most the last T of them. */
ZERO_NODISCARD zero_status zero_engine_generate(zero_engine *e, const zero_sampling *how,
                                                int64_t n_known, int64_t n, int32_t *text);

/* Of parameters and moments. */
ZERO_NODISCARD zero_status zero_engine_digest(zero_engine *e, char hex[33]);

/* A group's arrays, [padded]; the engine owns them. Local. */
typedef struct {
    float *param, *grad, *momentum, *variance;
} zero_group_arrays;
zero_group_arrays zero_engine_group(const zero_engine *e, int group);
