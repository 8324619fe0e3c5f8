/* writer.h - the verbs with which stages write their programs.
 *
 * A writer is a program in the making. It knows where the microbatch's data is, which
 * parameters are whole here, and where gradients go. Stages hold memory (holdings.h) and
 * call the verbs in order. */
#pragma once

#include "sharding/stages.h"

#define ZERO_COUNTER_LEVELS 18 /* of the binary counter: up to 2^17 microbatches */

/* The deal of a step's microbatches: M neighbours to each rank, or every N_d-th. */
typedef enum { ZERO_DEAL_BLOCKS, ZERO_DEAL_ROUND } zero_deal;

struct zero_gradient_path {
    zero_deal deal;
    void (*completed)(zero_writer *w, int g); /* backward has written all of group g's */
    void (*reduced)(zero_writer *w);          /* `ended` has its sum over all N_d ranks */
    void (*summed)(zero_writer *w); /* all microbatches are reduced; NULL: nothing to do */
};

/* A block of optimizer states in the file. */
typedef struct {
    int group, number;
} zero_writer_block;

/* All blocks of a program in the order of their updates, and how far it has been
 * written. */
typedef struct {
    zero_writer_block *list; /* [n] */
    int n;
    int next;            /* the next one to be updated */
    int fetched, stored; /* blocks whose FETCH, whose STORE_WAIT is written */
} zero_writer_stream;

struct zero_writer {
    zero_schedule *s;
    const zero_plan_input *in; /* of the schedule, like the next two */
    const zero_model *model;
    zero_group_state *groups;
    void *memory; /* of all tables below */
    zero_program_kind program;
    int64_t B, T;
    int microbatch;
    int rank_stride, microbatch_stride; /* see zero_instruction */
    int tokens, row_loss, stream;
    int host_rows;    /* with a device: row losses of all microbatches, on the host */
    int *out, *saved; /* [n_units] */
    int *kept;        /* [n_units] what KEEP writes; ZERO_NO_BUFFER: nothing */

    int *param;    /* [n_groups] the whole parameters; ZERO_NO_BUFFER: not here */
    int *piece;    /* [n_groups] this rank's piece, in memory or on its way there */
    int *sent;     /* [n_groups] a piece of this program that a GATHER in flight reads */
    int *mirrors;  /* [n_groups] staging of this program for a GATHER in flight */
    bool *arrived; /* [n_groups] they have been waited for */

    /* [n_groups] the units that add to a group's gradient first and last, in backward
     * order */
    int *first_writer, *last_writer;
    int *grad;                           /* [n_groups] what backward writes, fp32 */
    int (*partial)[ZERO_COUNTER_LEVELS]; /* [n_groups] partial sums of the counter */
    zero_instruction reducing;           /* the REDUCE in flight; group -1: none */
    zero_instruction crossing;           /* the ALL_REDUCE in flight; group -1: none */
    zero_instruction ended;         /* the REDUCE, or ALL_REDUCE, that has just ended */
    zero_instruction collecting;    /* the last COLLECT */
    int summing;                    /* stage 0: the group of its sum's GATHER; or -1 */
    int unsquared;                  /* the group whose sum has just become whole; or -1 */
    const zero_gradient_path *path; /* NULL: a program without gradients */

    int n_order;     /* groups that are held here */
    int *order;      /* [n_groups] in the order of their updates */
    bool *is_due;    /* [n_groups] `lazy`: the last step's UPDATE is still to be written */
    int n_due;       /* groups of `order` that were due and are not any more */
    int *saved_file; /* [n_units] the place of its output in the file */
    int *final_at;   /* [n_groups] the instruction that ended the gradient */
    bool *has_norm;  /* [n_groups] its NORM is written */
    int after;       /* of the stream: see zero_instruction */
    zero_writer_stream blocks;
};

/* Begins a program; false, with s->status set, if there is no memory. */
bool zero_writer_open(zero_writer *w, zero_schedule *s, zero_program_kind program,
                      const zero_gradient_path *path);
void zero_writer_close(zero_writer *w);

/* An instruction of the current microbatch, without operands. */
zero_instruction *zero_write(zero_writer *w, zero_op op);

/* What waits for an instruction that has begun something. */
void zero_write_wait(zero_writer *w, zero_op op, const zero_instruction *begun);

/* The same of group g, from `in` to `buffer`. */
zero_instruction *zero_write_group(zero_writer *w, zero_op op, int g, int in, int buffer);

/* A buffer of the program; ZERO_NO_BUFFER for 0 bytes. */
int zero_write_buffer(zero_writer *w, zero_class cls, zero_space space, size_t bytes);
/* The same for what a collective stages. */
int zero_write_staging(zero_writer *w, size_t bytes);

/* The number of the program's last instruction so far. */
int zero_write_last(const zero_writer *w);

/* Begins microbatch m: its buffers, and LOAD if the program reads data. */
void zero_write_load(zero_writer *w, int m);
/* FORWARD of unit u; first waits for parameters that are on their way. */
void zero_write_forward(zero_writer *w, int u);
/* BACKWARD of unit u, after RECOMPUTE if the plan says so. */
void zero_write_backward(zero_writer *w, int u);
/* To be called after FORWARD, RECOMPUTE or BACKWARD: of a shared model it becomes the parts
 * of that pass, with their JOINs. A unit that breaks the contract of zero_unit_part is kept
 * as a failure in s->status. writer_parts.c */
void zero_write_parts(zero_writer *w);
/* The staging of a JOIN or COLLECT; ZERO_NO_BUFFER if it stages nothing. */
int zero_write_join_staging(zero_writer *w, int join);
/* True if BACKWARD or RECOMPUTE reads the unit's parameters. */
bool zero_write_backward_reads(const zero_writer *w, int u);
/* LOSS of all microbatches so far. */
void zero_write_loss(zero_writer *w);

/* ---- parameters: writer_update.c ---- */

/* GATHER of group g from this rank's piece in `in` to `buffer`, which may be the same. */
void zero_write_gather(zero_writer *w, int g, int in, int buffer);
void zero_write_gather_wait(zero_writer *w, int g, int buffer);
/* The same to w->param[g], unless they have been waited for. */
void zero_write_await(zero_writer *w, int g);

/* With offload_parameters: FETCH_PARAM of group g, unless its piece is on its way. */
void zero_write_fetch_params(zero_writer *w, int g);
/* This rank's piece of group g in memory, for a GATHER; after FETCH_PARAM_WAIT if it comes
 * from the file. */
int zero_write_await_piece(zero_writer *w, int g);
/* NORM of the group `unsquared`: beside the collective that has begun since its sum became
 * whole. It stays at the end of the step where squares are taken on a device, with offload,
 * with `serial`, and in stage 0, where the sum belongs to a GATHER until then. */
void zero_write_early_norm(zero_writer *w);
/* LOSS, NORM of the groups that are left, OVERFLOW, the checks that are planned; then,
 * unless they stand elsewhere (zero_offload), UPDATE of all groups in the order of their
 * use. */
void zero_write_update(zero_writer *w);
/* UPDATE of group g, followed by the GATHER of its parameters if it is published. */
void zero_write_update_of(zero_writer *w, int g);
/* `delayed`, at the end of all steps: the last step's update. */
void zero_write_late_update(zero_writer *w);
/* UPDATE of a block of group g in a slot: range and slot are still to be set. */
zero_instruction *zero_write_update_block(zero_writer *w, int g);
/* To be called when the gradient of group g is what NORM and UPDATE read. With `backward`
 * it may be updated from here on; with updates beside a device FETCH_GRAD stands here. */
void zero_write_gradient_is_final(zero_writer *w, int g);

/* ---- a slower tier: writer_offload.c ---- */

/* The instruction after which UPDATE of group g may run: see zero_instruction. */
int zero_write_after(const zero_writer *w, int g);
/* The stream up to the last block of group g, which is the next in order. */
void zero_write_stream(zero_writer *w, int g);
void zero_write_whole_stream(zero_writer *w);
/* STORE_WAIT of the blocks that were updated. */
void zero_write_finish_stream(zero_writer *w);

/* `lazy`: UPDATE, and GATHER if it is published, of all groups up to g, if they are due. */
void zero_write_due(zero_writer *w, int g);
void zero_write_due_of_unit(zero_writer *w, int u, bool only_published);

/* ---- what waits for its backward pass: writer_kept.c ---- */

/* True if the unit's passes are computed again. */
bool zero_write_recomputes(const zero_writer *w, int u);
/* Unit u's output in floats of memory: two elements of 16 bits fill one, and move as
 * one. */
int64_t zero_write_out_floats(const zero_writer *w, int u);
/* The buffer of unit u's output, to which FORWARD writes. */
int zero_write_output(zero_writer *w, int u);
/* The node's buffer in which KEEP will put FORWARD u's input; ZERO_NO_BUFFER: none. */
int zero_write_place_kept(zero_writer *w, int u);
/* To be called after FORWARD of unit u: outputs that wait become pieces, and go to the
 * file. */
void zero_write_keep_after(zero_writer *w, int u);
/* To be called before BACKWARD of unit u: they come from the file, and are collected. */
void zero_write_bring_back_for(zero_writer *w, int u);

/* ---- gradients: writer_gradients.c ---- */

/* ROUND of a range of group g. */
void zero_write_round(zero_writer *w, int g, zero_range range, int in, int buffer);

/* Calls `completed` for each group whose gradient u's backward completes. */
void zero_write_complete(zero_writer *w, int u);
/* Ends what is in flight, and calls `reduced` for each sum: the REDUCE, and with replicas
 * its ALL_REDUCE and the one before. */
void zero_write_finish_reduce(zero_writer *w);

/* Gradients held whole, `completed`: this microbatch's joins the sum; after the last one,
 * REDUCE of that sum, in place. */
void zero_write_sum_whole(zero_writer *w, int g);
/* `reduced`: this rank's piece of the sum is rounded to where the gradient belongs. */
void zero_write_round_sum(zero_writer *w);

/* Gradients held in pieces, `completed`: REDUCE of this microbatch's. `reduced`: this
 * rank's piece, which is all that remains, joins the sum of pieces. */
extern const zero_gradient_path zero_gradient_in_pieces;

/* ---- whole programs: writer_programs.c ---- */

/* All programs, as the row of the input's stage says. */
void zero_write_programs(zero_schedule *s);
/* ---- pipelines: writer_pipeline.c ---- */

/* The passes of a stage's program, with what it sends and receives. */
void zero_write_stage(zero_writer *w);
/* The first unit's parameters go from the stage that has updated them to the one with its
 * FORWARD. Does nothing where both are one. */
void zero_write_copies(zero_writer *w);
