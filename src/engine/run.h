/* run.h - the interpreter that executes a schedule: memory, arithmetic, messages.
 *
 * It walks a program's array and does what each instruction says; it knows neither layers nor
 * stages. All memory of ours is taken by init; a program allocates nothing.
 *
 * While the backend computes, it calls back between tiles, and the interpreter lets the
 * collectives in flight progress (MPI does not do so by itself). */
#pragma once

#include "base/arena.h"
#include "base/tree.h"
#include "comm/collective.h"
#include "comm/window.h"
#include "engine/profile.h"
#include "sharding/schedule.h"
#include "zero/train.h"

/* What one walk through a program is given. */
typedef struct {
    zero_program_kind program;
    const zero_source *source; /* STEP, EVALUATE */
    int64_t step;              /* of the source and of dropout, from 0 */
    int64_t first_microbatch;  /* EVALUATE: rank r takes first_microbatch + r */
    zero_adamw adamw;          /* STEP; grad_scale is set here */
    double clip;               /* STEP: largest gradient norm; 0: no clipping */
    double loss_scale;         /* STEP: gradients are computed that much larger */
    bool finds_origin;  /* STEP: look where the first number came up that is not finite */
    const void *prompt; /* GENERATE: [T] of the model's inputs */
    int64_t T;          /* GENERATE: 1 to the planned length */
} zero_run_input;

/* The first number of a walk that is not finite, as this rank met it. */
typedef struct {
    int at;                       /* the instruction; -1: all numbers were finite */
    int unit, tensor, microbatch; /* tensor -1: the output of the unit's forward; unit -1:
                                     the tensor's gradient, when it was rounded or added */
} zero_origin;

/* What a walk leaves behind. */
typedef struct {
    double loss;        /* STEP, EVALUATE: mean over all ranks' positions, nats */
    double grad_norm;   /* STEP: before clipping, without the loss scale */
    bool overflow;      /* STEP: a gradient was not finite, nothing was updated */
    zero_origin origin; /* STEP, if it was looked for */
    const float
        *logits; /* GENERATE: [V] after the last position; valid until the next walk */
} zero_run_output;

/* The collectives of a group's REDUCE or GATHER: several if its pieces have owners. */
typedef struct {
    zero_collective *ops; /* [n], owned */
    int n;
} zero_runner_exchange;

typedef struct {
    const zero_schedule *schedule; /* borrowed, like the next two */
    const zero_backend *backend;
    zero_comm *comm;
    zero_math math;
    const zero_window *window; /* borrowed; NULL if the schedule shares no buffer */
    zero_arena arena;
    zero_runner_exchange *reduce, *gather; /* [n_groups]; owned, like all below */
    double *losses;          /* [M] of this rank's microbatches, sums over positions */
    double *gathered;        /* [N_d * M], by rank, as they arrive */
    double *all_losses;      /* [N_d * M], by microbatch index */
    zero_tree_span *squares; /* [n_groups] */
    zero_status poll_status; /* of the callback, which cannot return one */
    double polled;           /* seconds of polls while collectives were in flight */
    zero_profile profile;
    int64_t walks[ZERO_PROGRAMS]; /* completed */
    struct zero_touch *touched;   /* [n_buffers]: when instructions used them */
} zero_runner;

/* The window that the schedule's shared spaces need. Collective over `comm`, one verdict: the
 * status of zero_window_init(). */
ZERO_NODISCARD zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                                             zero_window *window);

/* Collective over `comm`; every rank gets the same verdict. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                                            const zero_backend *backend, zero_comm *comm,
                                            const zero_window *window);
void zero_runner_destroy(zero_runner *r); /* accepts a zeroed runner */

/* Walks one program. Collective over the runner's ranks. */
ZERO_NODISCARD zero_status zero_runner_run(zero_runner *r, const zero_run_input *input,
                                           zero_run_output *output);

/* The memory of a buffer of the schedule; NULL for ZERO_NO_BUFFER. */
void *zero_runner_buffer(const zero_runner *r, int buffer);
/* Element `i` of a group's flat space in a buffer that holds it; NULL likewise. */
void *zero_runner_element(const zero_runner *r, int buffer, int64_t i);

/* The memory ledger of the programs walked so far, planned and measured: measured is when
 * instructions really used a buffer first and last; persistent buffers always. Allocates.
 * Local; ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_runner_memory(const zero_runner *r, zero_peak *planned,
                                              zero_peak *measured);
