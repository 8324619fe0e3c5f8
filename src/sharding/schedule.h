/* schedule.h - a training step as data.
 *
 * A stage compiles a model into a schedule once: programs, which are flat arrays of small
 * instructions, and the buffers these name. After that nothing decides anything; interpreters
 * walk the arrays. `run` executes them, others add up their bytes or print them.
 *
 *     step        LOAD 0, FORWARD 0, ..., FORWARD 2, BACKWARD 2, REDUCE 3, BACKWARD 1,
 *                 REDUCE_WAIT 3, GATHER 3, REDUCE 1, ..., LOSS, NORM, OVERFLOW, UPDATE 0, ...
 *     evaluate    LOAD 0, FORWARD 0..U-1, LOSS
 *     generate    FORWARD 0..U-1
 *
 * A buffer of a program lives from the first instruction that names it to the last, so all
 * memory is laid out before step 1: no allocation and no fragmentation inside a step (the
 * paper's M_D, section 6.3), and the peak is known before anything is allocated. Buffers of
 * no program in particular (parameters, gradients, optimizer states) live for the whole run.
 *
 * Nothing here communicates, and no memory of the model's size is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/spec.h"
#include "nn/model.h"
#include "sharding/partition.h"
#include "zero/status.h"

typedef enum {
    ZERO_OP_LOAD,       /* microbatch m's tokens */
    ZERO_OP_FORWARD,    /* unit u */
    ZERO_OP_BACKWARD,   /* unit u */
    ZERO_OP_ACCUMULATE, /* group g: adds the microbatch's gradient to the accumulator */
    ZERO_OP_REDUCE,     /* group g: begins the reduce-scatter of its gradient */
    ZERO_OP_REDUCE_WAIT,
    ZERO_OP_GATHER, /* group g: begins the all-gather of `buffer` */
    ZERO_OP_GATHER_WAIT,
    ZERO_OP_LOSS,     /* all ranks' losses, summed over the tree of microbatches */
    ZERO_OP_NORM,     /* group g: adds the squares of its gradient to those before */
    ZERO_OP_OVERFLOW, /* the norm is known: all ranks agree whether it is finite */
    ZERO_OP_UPDATE,   /* group g: the optimizer step, if OVERFLOW allows it */
    ZERO_OP_KINDS
} zero_op;

/* What a byte of the arena is for: the lines of the memory ledger. */
typedef enum {
    ZERO_CLASS_PARAMETERS,
    ZERO_CLASS_GRADIENTS,
    ZERO_CLASS_ACCUMULATORS,
    ZERO_CLASS_OPTIMIZER,
    ZERO_CLASS_BUCKETS,
    ZERO_CLASS_ACTIVATIONS,
    ZERO_CLASS_LOGITS,
    ZERO_CLASS_WORKSPACE,
    ZERO_CLASS_DATA,
    ZERO_CLASSES
} zero_class;

typedef enum {
    ZERO_PROGRAM_STEP,
    ZERO_PROGRAM_EVALUATE,
    ZERO_PROGRAM_GENERATE,
    ZERO_PROGRAMS,
    ZERO_PROGRAM_ALL = ZERO_PROGRAMS /* of a buffer: it lives for the whole run */
} zero_program_kind;

#define ZERO_NO_BUFFER (-1)

typedef struct {
    zero_class class;
    zero_program_kind program;
    size_t bytes;
    bool shared;     /* lies in the node's window, one part per rank, for the whole run */
    size_t offset;   /* in the arena; a multiple of ZERO_BUFFER_ALIGN */
    int array;       /* shared: which array of the window */
    int first, last; /* instructions between which it lives, both included */
} zero_buffer;

#define ZERO_BUFFER_ALIGN 64

/* Every operand is an index into the schedule's buffers, or ZERO_NO_BUFFER. */
typedef struct {
    zero_op op;
    int unit;       /* FORWARD, BACKWARD */
    int group;      /* what names a group */
    int microbatch; /* of this rank, from 0; LOSS: the last one */
    int param[ZERO_UNIT_GROUPS], grad[ZERO_UNIT_GROUPS]; /* UPDATE, NORM: the first */
    bool accumulate[ZERO_UNIT_GROUPS];
    int momentum, variance; /* UPDATE */
    int in, out, stream, saved, work, logits, row_loss, tokens;
    int buffer;  /* what REDUCE, GATHER, ACCUMULATE write */
    int staging; /* REDUCE: where pieces of other ranks arrive */

    /* LOAD, LOSS: microbatch m of rank r is number rank_stride*r + microbatch_stride*m of
     * the global batch. */
    int rank_stride, microbatch_stride;
    zero_traffic traffic; /* REDUCE, GATHER: what this rank moves */
} zero_instruction;

typedef struct {
    zero_instruction *code;
    int length, capacity;
} zero_program;

/* What a stage compiles for. */
typedef struct {
    const zero_model *model;
    int stage;
    int n_ranks;         /* N_d */
    int64_t micro_batch; /* sequences per microbatch and rank */
    int64_t seq;         /* T */
    int accumulation;    /* M: microbatches per rank and step */
    int64_t bucket;      /* C_B, elements */
    zero_algorithm collectives;
    const zero_layout
        *layout; /* borrowed, of n_ranks; NULL: every rank on a node of its own */
    int rank;    /* whose communication ledger this is */
} zero_plan_input;

/* The memory of one group, by buffer index. */
typedef struct {
    zero_partition partition;
    int param, grad, momentum, variance; /* [padded]; grad is the accumulator if M > 1 */
} zero_group_state;

typedef struct {
    zero_plan_input input;
    zero_layout own_layout; /* where the input gives none; owned */
    zero_program programs[ZERO_PROGRAMS];
    zero_buffer *buffers;
    int n_buffers, buffer_capacity;
    zero_group_state *groups; /* [model->n_groups] */
    size_t persistent_bytes; /* of buffers that live for the whole run: the arena's start */
    size_t arena_bytes;
    int n_arrays;        /* of the node's window: the shared buffers, in their order */
    size_t window_bytes; /* of this rank in the window */
    size_t peak_bytes;   /* alive at once, at most; arena and window minus gaps */
    size_t class_peak[ZERO_CLASSES]; /* each class at its own worst instruction */
    zero_status status;              /* of the building calls below */
    zero_instruction discarded;      /* what emit() returns when there is no memory */
} zero_schedule;

/* Compiles input->model for input->stage and lays memory out. ZERO_ERR_INVALID unless all
 * numbers are at least 1, the model takes the sequences, a microbatch has at most 2^24 tokens
 * and the bucket holds the smallest pieces that N_d ranks can exchange; ZERO_ERR_UNSUPPORTED
 * for a stage this version does not build, ZERO_ERR_NOMEM. Not collective; release with
 * _destroy. */
ZERO_NODISCARD zero_status zero_schedule_compile(zero_schedule *s,
                                                 const zero_plan_input *input);
void zero_schedule_destroy(zero_schedule *s);

#define ZERO_MAX_OPERANDS (2 * ZERO_UNIT_GROUPS + 12)
/* The buffers that an instruction names, ZERO_NO_BUFFER among them; returns how many. */
int zero_instruction_operands(const zero_instruction *i, int list[ZERO_MAX_OPERANDS]);

const zero_layout *
zero_schedule_layout(const zero_schedule *s); /* which ranks share nodes */

/* What a step moves on this rank by instructions of one kind. */
zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_op op);

const char *zero_op_name(zero_op op);        /* "FORWARD" */
const char *zero_class_name(zero_class cls); /* "optimizer states" */

/* For stages: add a buffer, add an instruction. A failure is kept in s->status. */
int zero_schedule_add_buffer(zero_schedule *s, zero_program_kind program, zero_class cls,
                             size_t bytes);
zero_instruction *zero_schedule_emit(zero_schedule *s, zero_program_kind program,
                                     zero_op op);

/* Moves a buffer that lives for the whole run to the node's window, if the collectives work
 * in one. */
void zero_schedule_share(zero_schedule *s, int buffer);

/* The collective that REDUCE or GATHER of group g is, in place in its buffer; the bucket
 * bounds the staging, except for `mpi`, which decides for itself. */
zero_collective_spec zero_schedule_collective(const zero_schedule *s, zero_op op, int g);

/* Stage 0, plain data parallelism: everything is replicated. src/sharding/stage_none.c */
void zero_stage_none_compile(zero_schedule *s);
