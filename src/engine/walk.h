/* walk.h - one walk through a program: its input, its output, and what instructions share.
 *
 * run_units.c, run_exchange.c, run_join.c, run_kept.c, run_update.c, run_checks.c and
 * run_offload.c execute instructions; run.c has the table of them and the walk itself. */
#pragma once

#include "engine/origin.h"
#include "engine/undefined.h"
#include "state/runner.h"
#include "zero/train.h"

typedef struct {
    zero_program_kind program;
    const zero_source *source; /* STEP, EVALUATE */
    int64_t step;              /* of the source and of dropout, from 0 */
    int64_t first_microbatch;  /* EVALUATE: rank r takes first_microbatch + r */
    zero_adamw adamw;          /* STEP; grad_scale is set here */
    double clip;               /* STEP: largest gradient norm; 0: no clipping */
    double loss_scale;         /* STEP: the factor of all gradients */
    int64_t arguments;         /* STEP: a hash that must be equal on all ranks; >= 0 */
    bool is_refused;           /* STEP: this rank has no samples, and the vote says so */
    bool only_computes;        /* STEP: nothing is updated */
    bool finds_origin;         /* STEP: search for the first number that is not finite */
    const void
        *prompt;  /* GENERATE: [T] of the model's inputs; TOKEN: [texts], one of each */
    int64_t T;    /* GENERATE: 1 to the planned length */
    int64_t text; /* GENERATE: which of the plan's texts the cache gets; from 0 */
    const int64_t *past; /* TOKEN: [texts] positions of each that the cache has */
} zero_run_input;

/* A rank's verdict on a step. The gravest verdict of all ranks holds for all. */
typedef enum {
    ZERO_STEP_FINE,
    ZERO_STEP_OVERFLOW,  /* a gradient is not finite */
    ZERO_STEP_UNDEFINED, /* a unit left numbers undefined */
    ZERO_STEP_CORRUPTED, /* the last UPDATE met flipped bits on a rank */
    ZERO_STEP_REFUSED,   /* a rank was called with wrong arguments */
    ZERO_STEP_FAILED,    /* a rank's scratch file or device has failed */
} zero_step_verdict;

typedef struct {
    double loss;               /* STEP, EVALUATE: mean over all ranks' positions, nats */
    double grad_norm;          /* STEP: before clipping, without the loss scale */
    zero_step_verdict verdict; /* STEP, of all ranks */
    bool differs;              /* STEP: ranks have different arguments */
    bool overflow;             /* STEP: a gradient was not finite, nothing was updated */
    zero_undefined undefined;  /* of the first STEP on this rank */
    zero_origin origin;        /* STEP with finds_origin */
    /* GENERATE: [V] of the last position; TOKEN: [texts,V]; valid until the next walk */
    const float *logits;
} zero_run_output;

struct zero_walk {
    zero_runner *r;
    const zero_run_input *in;
    zero_run_output *out;
    const zero_plan_input *plan;
    zero_batch batch;
    zero_pending_update update; /* of UPDATE; known from OVERFLOW on, or pending */
    /* With `lazy` beside a device, the calls before this walk: none of the walk's own uses a group before
     * its STORE_PARAM. Else 0. */
    zero_call_place begin;
    int ahead;         /* instructions of the stream before this one are executed */
    bool is_in_stream; /* one of them is being executed */
    bool finds_undefined;
    zero_origin_search search;
};

/* The instruction of the walk's program as records name it: program and index. */
static inline int64_t zero_walk_label(const zero_walk *w, const zero_instruction *i)
{
    const zero_program *p = &w->r->schedule->programs[w->in->program];
    return zero_label(w->in->program, (int)(i - p->code));
}

/* Executes one instruction. */
typedef zero_status zero_execute(zero_walk *w, const zero_instruction *i);

zero_execute zero_run_load, zero_run_forward, zero_run_backward;      /* run_units.c */
zero_execute zero_run_reduce, zero_run_reduce_wait;                   /* run_exchange.c */
zero_execute zero_run_all_reduce, zero_run_all_reduce_wait;           /* the same */
zero_execute zero_run_gather, zero_run_gather_wait, zero_run_release; /* the same */
zero_execute zero_run_join, zero_run_join_wait;                       /* run_join.c */
zero_execute zero_run_keep, zero_run_collect, zero_run_collect_wait;  /* run_kept.c */
zero_execute zero_run_round, zero_run_accumulate;                     /* run_update.c */
zero_execute zero_run_loss, zero_run_norm, zero_run_overflow, zero_run_update;
zero_execute zero_run_publish, zero_run_delay;
zero_execute zero_run_verify, zero_run_compare, zero_run_record;  /* run_checks.c */
zero_execute zero_run_fetch, zero_run_store, zero_run_block_wait; /* run_offload.c */
zero_execute zero_run_fetch_param, zero_run_fetch_param_wait;
zero_execute zero_run_fetch_grad, zero_run_store_param;
zero_execute zero_run_save, zero_run_restore, zero_run_activation_wait;

/* LOSS: waits for the losses of this rank's microbatches, if they come from a device. */
void zero_run_end_losses(zero_walk *w, const zero_instruction *i);

/* Puts the step's number before the message of ZERO_ERR_CORRUPTED. */
ZERO_NODISCARD zero_status zero_name_step(int64_t step, zero_status st);

/* The update of a step whose gradient is finite and has this norm. */
zero_pending_update zero_run_agreed_update(const zero_run_input *in, double norm);

/* Executes instructions of the stream of optimizer states before the walk comes to them, as far as
 * that needs no waiting. Called by polls. */
void zero_run_ahead(zero_walk *w);
/* True if the present instruction was executed ahead. To be called before each instruction. */
bool zero_run_was_ahead(zero_walk *w, const zero_instruction *i);

/* The number of a rank's microbatch m in the global batch, by the program's own strides. */
static inline int64_t zero_walk_microbatch(const zero_walk *w, const zero_instruction *i,
                                           int rank, int m)
{
    return w->in->first_microbatch + (int64_t)rank * i->rank_stride +
           (int64_t)m * i->microbatch_stride;
}

static inline zero_type zero_walk_type(const zero_walk *w, int buffer)
{
    return w->r->schedule->buffers[buffer].type;
}

/* The place of an operand. The memory ledger is measured by these calls. */
static inline void *zero_use(const zero_walk *w, int buffer)
{
    return zero_runner_use(w->r, buffer);
}

static inline void *zero_use_element(const zero_walk *w, int buffer, int64_t i)
{
    return zero_runner_use_element(w->r, buffer, i);
}
