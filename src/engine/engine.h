/* engine.h - a model in training: its schedule, its memory, its steps.
 *
 * Init decides everything, from the plan; a step only walks a program. Several engines can
 * live in one process. Functions are collective over the engine's ranks unless they say
 * otherwise, and give every rank the same result.
 *
 * An engine whose plan is forward_only evaluates and generates; it has neither steps nor a
 * digest. */
#pragma once

#include "engine/sampling.h"
#include "engine/walk.h"
#include "sharding/loss_scale.h"
#include "state/run_memory.h"
#include "state/visit.h"
#include "state/weights.h"

typedef struct {
    zero_plan_input plan; /* its rank and n_ranks are the ZeRO group's (comm/divide.h) */
    const zero_backend *backend;
    int device;                  /* which one, if the backend has several */
    zero_bits bits;              /* of the cpu backend's products */
    int64_t seed;                /* of random initial weights */
    const zero_weights *weights; /* initial weights; borrowed by init. NULL: random ones */
    /* Init writes no weights; before any other call a checkpoint does. */
    bool awaits_states;
    int64_t eval_batches;  /* global batches that one evaluation averages over */
    size_t memory_limit;   /* bytes that this rank may take; 0: no limit */
    size_t device_limit;   /* bytes of a device's arena; 0: no limit */
    bool may_use_p2p;      /* if a node cannot share memory, instead of an error */
    bool may_stage;        /* if devices do not reach each other, likewise (plan.ipc) */
    const char *directory; /* of the plan's file; borrowed by init. NULL: no file */
} zero_engine_spec;

typedef struct {
    zero_engine_spec spec;
    zero_schedule schedule;
    zero_window window;    /* the shard group's; zeroed if its ranks share no memory */
    zero_window tp_window; /* the TP group's, likewise */
    zero_runner runner;
    char why_p2p[512];    /* why p2p was taken instead of plan.collectives; or empty */
    char why_staged[512]; /* why ranks' devices exchange through the host; or empty */
    double *eval_losses;  /* by microbatch index; owned */
    int64_t adam_steps;   /* updates made so far: Adam's t is the next */
    int64_t skipped;      /* steps without an update: a gradient overflowed */
    zero_loss_scale loss_scale; /* of the next step */
    bool has_gradient;          /* a step's summed gradient is there to be read */
    double gradient_scale;      /* the loss scale that it was made with */
    /* The last step's gathers may not have ended, or its update not begun. */
    bool in_flight;
} zero_engine;

/* ---- engine_setup.c ---- */

/* The plan for this model, or this rank's part of one, with its T and activations, and for
 * the ranks of `comm`, whose layouts are borrowed. Every start-up of an engine begins with
 * it. */
zero_plan_input zero_engine_place(zero_plan_input plan, const zero_model *model,
                                  zero_comm *comm);

/* Compiles, allocates, and initialises the weights, each rank those that it holds. The
 * model and comm are borrowed. The engine must stay where it is: callbacks hold its
 * address. */
zero_status zero_engine_init(zero_engine *e, const zero_engine_spec *spec, zero_comm *comm);
void zero_engine_destroy(zero_engine *e); /* accepts a zeroed engine */

/* From here on steps are recorded in the trace (borrowed), between its _step_begin() and
 * _step_end(); with NULL nothing is any more. Local. */
void zero_engine_record(zero_engine *e, zero_trace *trace);

/* ---- engine.c ---- */

/* One optimizer step on the source's step. With fp16 a gradient that is not finite skips
 * the update (out->overflow) and lowers the loss scale. At the least scale, and with other
 * types, it is ZERO_ERR_DIVERGED: nothing is updated, and the message names the step, unit,
 * tensor and rank where the first such number came up. ZERO_ERR_CORRUPTED if a check that
 * is due finds a flipped bit; nothing is updated then. */
zero_status zero_engine_step(zero_engine *e, const zero_source *source,
                             const zero_step_input *in, zero_run_output *out);

/* The same step without its update: parameters, moments, Adam's count and the loss scale
 * stay. With fp16 an overflow is no error (out->overflow). */
zero_status zero_engine_compute(zero_engine *e, const zero_source *source,
                                const zero_step_input *in, zero_run_output *out);

/* In place of zero_engine_step() or zero_engine_compute() on a rank that was called with
 * wrong arguments, for which `why` is the last failure: the others wait for this rank's
 * messages. No rank updates anything, and all get `why`. */
zero_status zero_engine_refuse(zero_engine *e, zero_status why);

/* The microbatches, of all ranks, that one evaluation averages over. Local. */
int64_t zero_engine_eval_microbatches(const zero_engine *e);

/* Mean loss, nats per token, over samples 0, 1, ... of the source's step 0. */
zero_status zero_engine_evaluate(zero_engine *e, const zero_source *source, double *loss);

/* A text in the making: n_known > 0 tokens, and room for those that are drawn. */
typedef struct {
    int64_t n_known;
    int32_t *tokens; /* [n_known + n] */

    /* The result: the last of them ends the text. */
    int64_t n_drawn;
    bool has_ended;
} zero_text;

/* Appends n drawn tokens to each text, or fewer if one of them ends it. The model sees at
 * most the last T tokens of a text. A plan with `texts` computes that number of texts at
 * one time, and each token once, until a text is longer than T. Each text is the same as
 * alone. ZERO_ERR_DIVERGED if logits are not finite. generate.c */
zero_status zero_engine_generate_texts(zero_engine *e, const zero_sampling *how, int64_t n,
                                       zero_text *texts, int64_t n_texts);

/* Around programs that update nothing: before, so that they read the parameters after the
 * last step's update; and after, for there was no vote, and wrong parameters may have been
 * read. */
zero_status zero_engine_settle_update(zero_engine *e);
zero_status zero_engine_check_parameters(zero_engine *e);

/* Waits for the gathers that the last step left in flight, and makes the update that a
 * `lazy` plan left to the next step. All ranks get the first failure of any rank's scratch
 * file. */
zero_status zero_engine_settle(zero_engine *e);

/* Makes the update that a `lazy` or `delayed` plan left to the next step, so that states
 * are those after the last step. Does nothing with other plans. */
zero_status zero_engine_finish_update(zero_engine *e);

/* Looks for flipped bits, as the plan's check_replicas and check_memory say (checks.h);
 * ZERO_ERR_CORRUPTED names rank, tensor and elements. Does nothing if both are 0. */
zero_status zero_engine_check(zero_engine *e);
/* The same but for copies, which are compared beside the next step
 * (zero_replicas_sum_copies()). */
zero_status zero_engine_check_own(zero_engine *e);

/* The digest of parameters and moments, after zero_engine_check(): a state with flipped
 * bits has none, so no checkpoint has it either. */
zero_status zero_engine_digest(zero_engine *e, char hex[33]);

/* out[] = elements `range`, which this rank holds, of a group's gradient, summed over ranks
 * and microbatches; if e->has_gradient, until the next step. Local; the status of
 * zero_inspect(). */
zero_status zero_engine_gradient(zero_engine *e, int group, zero_range range, float *out);

/* Fills all parameters anew, each rank those that it holds, and publishes them. Moments
 * stay as they are. The status of the first rank that cannot fill its part. */
zero_status zero_engine_set_weights(zero_engine *e, const zero_weights *weights);

/* Copies the masters to the parameters that the forward pass reads, on all ranks. To be
 * called after masters were written. */
zero_status zero_engine_publish(zero_engine *e);

/* The communication ledger of REDUCE, ALL_REDUCE, GATHER, JOIN or COLLECT on this rank: the
 * bytes and messages planned for all programs walked so far, and those that their
 * collectives have moved, with the time. Local. */
zero_traffic zero_engine_planned_traffic(const zero_engine *e, zero_op op);
/* Small messages planned for all programs walked so far; runner.control are those that were
 * moved. The group has moved more, because a start, a checkpoint and a sample need some,
 * too. Local. */
zero_traffic zero_engine_planned_control(const zero_engine *e);
void zero_engine_measured_traffic(const zero_engine *e, zero_op op, zero_traffic *traffic,
                                  zero_duration *duration);
