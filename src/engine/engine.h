/* engine.h - a model in training: its schedule, its memory, its steps.
 *
 * Everything is decided by init, from the plan; a step only walks a program. Several engines
 * can live in one process. Functions are collective over the engine's ranks unless they say
 * otherwise, and give every rank the same result.
 *
 * An engine whose plan is forward_only evaluates and generates; it has neither steps nor a
 * digest. */
#pragma once

#include "engine/digest.h"
#include "engine/run.h"
#include "engine/sampling.h"
#include "engine/weights.h"
#include "sharding/loss_scale.h"

typedef struct {
    zero_plan_input plan; /* its rank and n_ranks are the group's */
    const zero_backend *backend;
    int64_t seed;                /* of random initial weights */
    const zero_weights *weights; /* others; borrowed by init. NULL: random ones */
    int64_t eval_batches;        /* global batches that one evaluation averages over */
    size_t memory_limit;         /* bytes that this rank may take; 0: no limit */
    bool may_use_p2p; /* where a node cannot share memory: instead of plan.collectives */
} zero_engine_spec;

typedef struct {
    zero_engine_spec spec;
    zero_schedule schedule;
    zero_window window; /* zeroed if nothing is shared */
    zero_runner runner;
    char why_p2p[512];          /* the reason, if p2p was taken instead; else empty */
    double *eval_losses;        /* by microbatch index; owned */
    int64_t adam_steps;         /* updates made so far: Adam's t is the next */
    int64_t skipped;            /* steps without an update: a gradient overflowed */
    zero_loss_scale loss_scale; /* of the next step */
    bool in_flight;             /* the last step's gathers may not have ended */
} zero_engine;

/* Compiles, allocates, initialises the weights, each rank its own pieces. The model and comm
 * are borrowed, and the engine must stay where it is: callbacks hold its address. */
ZERO_NODISCARD zero_status zero_engine_init(zero_engine *e, const zero_engine_spec *spec,
                                            zero_comm *comm);
void zero_engine_destroy(zero_engine *e); /* accepts a zeroed engine */

/* One optimizer step on the source's step. With fp16 a gradient that is not finite skips the
 * update (out->overflow) and lowers the loss scale, until that is at its least; otherwise it
 * is ZERO_ERR_DIVERGED: nothing is updated, and the message names step, unit, tensor and rank
 * where the first such number came up. */
ZERO_NODISCARD zero_status zero_engine_step(zero_engine *e, const zero_source *source,
                                            const zero_step_input *in,
                                            zero_run_output *out);

/* Mean loss, nats per token, over samples 0, 1, ... of the source's step 0. */
ZERO_NODISCARD zero_status zero_engine_evaluate(zero_engine *e, const zero_source *source,
                                                double *loss);

/* Appends n drawn tokens to the n_known > 0 that text[n_known + n] begins with. The model sees
 * at most the last T of them. ZERO_ERR_DIVERGED if its logits are not finite. */
ZERO_NODISCARD zero_status zero_engine_generate(zero_engine *e, const zero_sampling *how,
                                                int64_t n_known, int64_t n, int32_t *text);

/* Waits for what the last step has left in flight. */
ZERO_NODISCARD zero_status zero_engine_settle(zero_engine *e);

/* Of parameters and moments. */
ZERO_NODISCARD zero_status zero_engine_digest(zero_engine *e, char hex[33]);

/* This rank's part of a group's optimizer state, [range]; the engine owns it. In stage 0 it is
 * all of the group, without the padding. What is forward_only has no moments, and with 16 bits
 * no masters: NULL. Local. */
typedef struct {
    zero_range range;
    float *master, *momentum, *variance;
} zero_engine_state;
zero_engine_state zero_engine_group(const zero_engine *e, int group);

/* Fills all parameters anew, each rank what it holds; then publishes them. Moments stay as they
 * are. The status of the first rank that cannot fill its part. */
ZERO_NODISCARD zero_status zero_engine_set_weights(zero_engine *e,
                                                   const zero_weights *weights);

/* Copies the masters to the parameters that the forward pass reads, on all ranks: after
 * somebody has written masters. */
ZERO_NODISCARD zero_status zero_engine_publish(zero_engine *e);

/* What all programs walked so far move on this rank by instructions of one kind: the plan's
 * side of the communication ledger. Local. */
zero_traffic zero_engine_planned_traffic(const zero_engine *e, zero_op op);
