/* walk.h - one walk through a program: its input, its output, and what instructions share.
 *
 * The interpreter walks a program's array and does what each instruction says; it knows
 * neither layers nor stages. While the backend computes, it calls back between tiles, and
 * collectives in flight progress (MPI does not progress them by itself).
 *
 * run_units.c, run_exchange.c, run_update.c and run_offload.c execute instructions; run.c
 * has the table of them and the walk itself; run_setup.c opens and closes what it walks
 * on. */
#pragma once

#include "engine/origin.h"
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
    ZERO_STEP_OVERFLOW,    /* a gradient is not finite */
    ZERO_STEP_MISCOMPUTED, /* a pass that ran twice gave two results */
    ZERO_STEP_UNDEFINED,   /* a unit left numbers undefined */
    ZERO_STEP_CORRUPTED,   /* the last UPDATE met flipped bits on a rank */
    ZERO_STEP_REFUSED,     /* a rank was called with wrong arguments */
    ZERO_STEP_FAILED,      /* a rank's scratch file or device has failed */
} zero_step_verdict;

typedef struct {
    double loss;               /* STEP, EVALUATE: mean over all ranks' positions, nats */
    double grad_norm;          /* STEP: before clipping, without the loss scale */
    zero_step_verdict verdict; /* STEP, of all ranks */
    bool differs;              /* STEP: ranks have different arguments */
    bool overflow;             /* STEP: a gradient was not finite, nothing was updated */
    zero_origin undefined;     /* of the first STEP on this rank */
    zero_origin miscomputed;   /* STEP, on this rank: the first result that differed */
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
    /* With `lazy` beside a device, the calls before this walk: none of the walk's own uses
     * a group before its STORE_PARAM. Else 0. */
    zero_call_place begin;
    int ahead;         /* instructions of the stream before this one are executed */
    bool is_in_stream; /* one of them is being executed */
    /* Where the walk notes such numbers (origin.h); NULL: it does not look. */
    zero_origin *origin, *undefined;
    zero_origin *miscomputed; /* NULL: passes run once */
    zero_status status;       /* of the instructions so far */
};

/* The instruction of the walk's program as records name it: program and index. */
static inline int64_t zero_walk_label(const zero_walk *w, const zero_instruction *i)
{
    const zero_program *p = &w->r->schedule->programs[w->in->program];
    return zero_label(w->in->program, (int)(i - p->code));
}

/* Executes one instruction. */
typedef zero_status zero_execute(zero_walk *w, const zero_instruction *i);
extern zero_execute *const zero_executes[ZERO_OP_KINDS]; /* run.c */

zero_execute zero_run_load, zero_run_pass, zero_run_loss; /* run_units.c */
zero_execute zero_run_exchange, zero_run_exchange_wait,
    zero_run_release; /* run_exchange.c */
zero_execute zero_run_all_reduce, zero_run_join, zero_run_keep, zero_run_collect,
    zero_run_message;
zero_execute zero_run_round, zero_run_accumulate; /* run_update.c */
zero_execute zero_run_norm, zero_run_overflow, zero_run_update;
zero_execute zero_run_copy;
zero_execute zero_run_verify, zero_run_compare, zero_run_record;
zero_execute zero_run_transfer, zero_run_transfer_wait; /* run_offload.c */
zero_execute zero_run_fetch_grad, zero_run_store_param;

/* Puts the step's number before the message of ZERO_ERR_CORRUPTED. */
zero_status zero_name_step(int64_t step, zero_status st);

/* The update of a step whose gradient is finite and has this norm. */
zero_pending_update zero_run_agreed_update(const zero_run_input *in, double norm);

/* Executes instructions of the stream of optimizer states before the walk comes to them, as
 * far as that needs no waiting. Called by polls. */
void zero_run_ahead(zero_walk *w);
/* Waits until it has; collectives progress. */
void zero_run_await_reader(zero_walk *w, int group);
/* True if the present instruction was executed ahead. To be called before each
 * instruction. */
bool zero_run_was_ahead(zero_walk *w, const zero_instruction *i);

/* The number of a rank's microbatch m in the global batch, by the program's own strides. */
static inline int64_t zero_walk_microbatch(const zero_walk *w, const zero_instruction *i,
                                           int rank, int m)
{
    return w->in->first_microbatch + (int64_t)rank * i->rank_stride +
           (int64_t)m * i->microbatch_stride;
}

/* The positions that a mean is taken over: those that count, of n. */
static inline int64_t zero_walk_positions(const zero_run_input *in, int64_t n)
{
    return in->source && in->source->counted > 0 ? in->source->counted : n;
}

static inline zero_type zero_walk_type(const zero_walk *w, int buffer)
{
    return w->r->schedule->buffers[buffer].type;
}

/* The place of an operand. The memory ledger is measured by these calls. */
void *zero_use(const zero_walk *w, int buffer);
void *zero_use_element(const zero_walk *w, int buffer, int64_t i);
/* From the beginning of the instruction's range on. */
static inline void *zero_use_range(const zero_walk *w, const zero_instruction *i,
                                   int buffer)
{
    return zero_use_element(w, buffer, i->range.begin);
}

/* ---- chains: run_exchange.c ----
 *
 * A chain is two collectives, of which the second needs the result of the first.
 *
 * A sum over a group is a reduce-scatter, after which each rank has a piece of it, and an
 * all-gather of the pieces: JOIN in the TP group, ALL_REDUCE among replicas. The walk
 * begins the first; a poll during arithmetic, or the wait, begins the second.
 *
 *     JOIN                          JOIN_WAIT
 *     reduce-scatter ... | a poll: all-gather ... |
 *
 * A group has one chain in flight at a time, so all its ranks begin the same collectives in
 * the same order. */

/* Begins the first collective of c->chain. It reads `in`, which may be c->whole. Collective
 * over the chain's group; does not block. */
zero_status zero_chain_begin(zero_chained *c, const void *in);

/* Begins the second collective if the first has ended. Does nothing if no chain is in
 * flight. Local; does not block. */
zero_status zero_chain_continue(zero_chained *c);

/* Returns when c->whole has the result of the chain in flight, or with the status of an
 * earlier poll that failed. Collective over the chain's group; blocks. */
zero_status zero_chain_wait(const zero_runner *r, zero_chained *c);

/* Walks one program. Collective over the runner's ranks. */
zero_status zero_runner_run(zero_runner *r, const zero_run_input *input,
                            zero_run_output *output);

/* ---- run_setup.c: memory, tables, collectives ---- */

/* The windows for the schedule's shared spaces: of the shard group, and of the TP group if
 * there is one; zeroed if nothing is shared. Collective over `comm`, one verdict: the
 * status of zero_window_init(). After a failure the caller destroys both. */
zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                              zero_window *window, zero_window *tp_window);

/* Where a runner computes and keeps its file. */
typedef struct {
    const zero_backend *backend;
    int device; /* which one, if the backend has several */
    zero_bits bits;
    const char *directory;                 /* of the file; NULL: no file */
    const zero_window *window, *tp_window; /* borrowed until the runner is destroyed */
} zero_runner_place;

/* Takes all memory, and the file if the schedule has one. Collective over `comm`, one
 * verdict: ZERO_ERR_UNSUPPORTED, with the reason, if the plan has ipc and devices do not
 * reach each other, or device_messages and MPI does not reach the device; ZERO_ERR_NOMEM;
 * ZERO_ERR_ENV if the backend cannot compute with the plan's type; or the status of the
 * backend's open() or of zero_tier_open(). */
zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                             const zero_runner_place *place, zero_comm *comm);
void zero_runner_destroy(zero_runner *r); /* accepts a zeroed runner */
