/* compile.h - the verbs that stages write their programs with.
 *
 * A writer is a program in the making: where the microbatch's data is, which parameters are
 * here, where gradients go. Stages decide who holds what, and call the verbs in order. */
#pragma once

#include "sharding/schedule.h"

/* ---- who holds what: compile_states.c ---- */

/* A buffer for data of group g: all of it, or this rank's own piece. */
int zero_hold_buffer(zero_schedule *s, zero_program_kind program, zero_class cls, int g,
                     zero_holding what, zero_space space, zero_type type);

/* The parameters of group g, or this rank's piece of them. Where nodes share memory they lie
 * there once: whole parameters, and pieces of a single node, which then form the whole. */
void zero_hold_parameters(zero_schedule *s, int g, zero_holding what);
/* The same on every rank for itself: plain data parallelism. */
void zero_hold_own_parameters(zero_schedule *s, int g);

/* The next two take no memory for what is forward_only: then they only say who would hold it.
 *
 * What REDUCE leaves and NORM and UPDATE read; for 16-bit types with M > 1 also accumulators.
 * With `gathered` a sum that was reduced in pieces becomes whole again. */
void zero_hold_gradients(zero_schedule *s, int g, zero_holding what, bool gathered);

/* Master weights (16-bit types), momentum and variance. */
void zero_hold_optimizer(zero_schedule *s, int g, zero_holding what);

/* Whether group g is updated in pieces but held whole: gathered after each update. */
bool zero_is_published(const zero_schedule *s, int g);

/* ---- writers: compile.c ---- */

#define ZERO_COUNTER_LEVELS 18 /* of the binary counter: up to 2^17 microbatches */

typedef struct zero_writer zero_writer;

/* How a step's microbatches are dealt to ranks: M neighbours to each, or every N_d-th. */
typedef enum { ZERO_DEAL_BLOCKS, ZERO_DEAL_ROUND } zero_deal;

/* What becomes of a stage's gradients. */
typedef struct {
    zero_deal deal;
    void (*completed)(zero_writer *w, int g); /* backward has written all of group g's */
    void (*reduced)(zero_writer *w);          /* the REDUCE in flight has ended */
    void (*summed)(
        zero_writer *w); /* so have all, of all microbatches; NULL: nothing more */
} zero_gradient_path;

struct zero_writer {
    zero_schedule *s;
    zero_program_kind program;
    int64_t B, T;
    int microbatch;
    int rank_stride, microbatch_stride; /* see zero_instruction */
    int tokens, row_loss, stream;
    int *out, *saved; /* [n_units] */

    int *param;    /* [n_groups] the whole parameters; ZERO_NO_BUFFER: not here */
    bool *arrived; /* [n_groups] they have been waited for */

    int *grad;                           /* [n_groups] what backward writes, fp32 */
    int (*partial)[ZERO_COUNTER_LEVELS]; /* [n_groups] partial sums of the counter */
    zero_instruction reducing;           /* the REDUCE in flight; its group is -1 if none */
    const zero_gradient_path *way;       /* NULL: a program without gradients */
};

/* Begins a program; false, with s->status set, if there is no memory. */
bool zero_writer_open(zero_writer *w, zero_schedule *s, zero_program_kind program,
                      const zero_gradient_path *way);
void zero_writer_close(zero_writer *w);

/* Begins microbatch m: its buffers, and LOAD if the program reads data. */
void zero_write_load(zero_writer *w, int m);
/* FORWARD of unit u; waits for parameters that are on their way. */
void zero_write_forward(zero_writer *w, int u);
/* RECOMPUTE, if that is wanted, and BACKWARD of unit u. */
void zero_write_backward(zero_writer *w, int u);
/* Whether the two read the unit's parameters: a forward once more always does. */
bool zero_write_backward_reads(const zero_writer *w, int u);
/* LOSS: of all microbatches so far. */
void zero_write_loss(zero_writer *w);
/* LOSS, NORM of all groups, OVERFLOW, UPDATE of all groups in the order of their use, each
 * followed by the GATHER of its parameters if it is published. */
void zero_write_update(zero_writer *w);

/* GATHER of group g from the own piece in `in` to `buffer`, which may be the same. */
void zero_write_gather(zero_writer *w, int g, int in, int buffer);
void zero_write_gather_wait(zero_writer *w, int g, int buffer);
/* ROUND of a range of group g. */
void zero_write_round(zero_writer *w, int g, zero_range range, int in, int buffer);

/* ---- gradients: compile_gradients.c ---- */

/* `completed` for each group whose gradient u's backward completes. */
void zero_write_complete(zero_writer *w, int u);

/* Stages 0, 1: group g's gradient of this microbatch joins the sum of whole gradients. After
 * the last one, REDUCE of that sum, in place. */
void zero_write_sum_whole(zero_writer *w, int g);
/* `reduced`: the own piece of the sum, rounded to where it belongs. */
void zero_write_round_sum(zero_writer *w);

/* Stages 2, 3: REDUCE of this microbatch's gradient. `reduced`: the own piece, which is all
 * that remains of it, joins the sum of pieces. */
void zero_write_reduce_leaf(zero_writer *w, int g);
void zero_write_sum_pieces(zero_writer *w);
extern const zero_gradient_path zero_gradient_in_pieces; /* these two */

/* REDUCE_WAIT for what is in flight, and `reduced`. */
void zero_write_finish_reduce(zero_writer *w);

/* ---- whole programs: compile_programs.c ---- */

/* All programs of a stage in which every rank has all parameters whenever it computes. */
void zero_write_programs(zero_schedule *s, const zero_gradient_path *way);
/* prologue and epilogue alone: gather, and wait for, what is published. */
void zero_write_ends(zero_schedule *s);
