/* schedule.h - a training step as data.
 *
 * A stage compiles a model into a schedule once: programs, which are flat arrays of small
 * instructions, and the buffers these name. After that nothing decides anything; interpreters
 * walk the arrays. `run` executes them, `plan` adds up their bytes and prints them.
 *
 *     prologue    gathers the parameters that stay whole (stages 1 and 2)
 *     step        LOAD 0, FORWARD 0, ..., BACKWARD 2, REDUCE 3, BACKWARD 1, REDUCE_WAIT 3, ...
 *                 LOSS, NORM, OVERFLOW, UPDATE 0, GATHER 0, ...
 *     evaluate    LOAD 0, FORWARD 0..U-1, LOSS
 *     generate    FORWARD 0..U-1
 *     epilogue    waits for what the step before left in flight
 *
 * A step may leave gathers of updated parameters in flight: whichever program comes next
 * waits for each group before its first use. A wait for what has ended is over at once.
 *
 * Memory. A buffer of a program lives from the first instruction that names it to the last,
 * so all memory is laid out before step 1: no allocation and no fragmentation inside a step
 * (the paper's M_D, section 6.3), and the peak is known before anything is allocated.
 * Buffers of no program in particular (parameters, optimizer states) live for the whole run.
 * There are three spaces: the rank's own arena; its part of the node's window, which
 * neighbours read; and what lies once per node in that window, for all its ranks.
 *
 * A schedule that is `forward_only` has no step, and of model states the parameters alone: what
 * evaluates and generates needs no more.
 *
 * Nothing here communicates, and no memory of the model's size is needed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/algorithm.h"
#include "nn/model.h"
#include "sharding/partition.h"
#include "zero/status.h"

typedef enum {
    ZERO_OP_LOAD,        /* microbatch m's tokens */
    ZERO_OP_GATHER,      /* group g: begins to collect `in`, of all ranks, in `buffer` */
    ZERO_OP_GATHER_WAIT, /* `buffer` is whole */
    ZERO_OP_FORWARD,     /* unit u */
    ZERO_OP_RECOMPUTE,   /* unit u once more, for what its backward reads */
    ZERO_OP_BACKWARD,    /* unit u */
    ZERO_OP_RELEASE,     /* group g: `buffer` has been read for the last time */
    ZERO_OP_ROUND,       /* group g: `in`, fp32, to the type of `buffer` */
    ZERO_OP_ACCUMULATE,  /* group g: buffer = sum + (in rounded to the type of gradients) */
    ZERO_OP_REDUCE,      /* group g: begins to add up `in` of all ranks for its owners */
    ZERO_OP_REDUCE_WAIT, /* the own piece of the sum is in `buffer` */
    ZERO_OP_LOSS,        /* all ranks' losses, summed over the tree of microbatches */
    ZERO_OP_NORM,        /* group g: the squares of the own piece of its gradient */
    ZERO_OP_OVERFLOW,    /* all squares are added; ranks agree whether all are finite */
    ZERO_OP_UPDATE,      /* group g: the optimizer step, if OVERFLOW allows it */
    ZERO_OP_KINDS
} zero_op;

/* What a byte of memory is for: the lines of the memory ledger. */
typedef enum {
    ZERO_CLASS_PARAMETERS,
    ZERO_CLASS_GRADIENTS,    /* that live for the whole run: part of the model states */
    ZERO_CLASS_OPTIMIZER,    /* master weights (of 16-bit runs), momentum, variance */
    ZERO_CLASS_GATHERED,     /* stage 3: parameters of others while they are needed */
    ZERO_CLASS_IN_FLIGHT,    /* a group's gradient between its BACKWARD and its REDUCE */
    ZERO_CLASS_ACCUMULATORS, /* M > 1: fp32 sums over microbatches */
    ZERO_CLASS_BUCKETS,      /* what collectives stage */
    ZERO_CLASS_ACTIVATIONS,
    ZERO_CLASS_LOGITS,
    ZERO_CLASS_WORKSPACE,
    ZERO_CLASS_DATA,
    ZERO_CLASSES
} zero_class;

typedef enum {
    ZERO_PROGRAM_PROLOGUE,
    ZERO_PROGRAM_STEP,
    ZERO_PROGRAM_EVALUATE,
    ZERO_PROGRAM_GENERATE,
    ZERO_PROGRAM_EPILOGUE,
    ZERO_PROGRAMS,
    ZERO_PROGRAM_ALL = ZERO_PROGRAMS /* of a buffer: it lives for the whole run */
} zero_program_kind;

typedef enum {
    ZERO_SPACE_OWN,  /* the rank's arena */
    ZERO_SPACE_PART, /* the rank's part of the node's window, laid out alike on all ranks */
    ZERO_SPACE_NODE, /* once per node, in the window */
    ZERO_SPACES
} zero_space;

#define ZERO_NO_BUFFER (-1)

typedef struct {
    zero_class class;
    zero_program_kind program;
    zero_space space;
    size_t bytes;
    size_t offset;   /* in its space; a multiple of ZERO_BUFFER_ALIGN */
    int first, last; /* instructions between which it lives, both included */
    zero_type type;  /* of a group's data: what its elements are, and */
    int64_t begin;   /* which element of the group's flat space comes first */
} zero_buffer;

#define ZERO_BUFFER_ALIGN 64

/* Every operand is an index into the schedule's buffers, or ZERO_NO_BUFFER. */
typedef struct {
    zero_op op;
    int unit;       /* FORWARD, RECOMPUTE, BACKWARD */
    int group;      /* what names a group */
    int microbatch; /* of this rank, from 0; LOSS: the last one */
    int param[ZERO_UNIT_GROUPS], grad[ZERO_UNIT_GROUPS]; /* UPDATE, NORM: the first */
    bool accumulate[ZERO_UNIT_GROUPS];
    int master, momentum, variance; /* UPDATE; master: 16-bit types only */
    int in, out, stream, saved, work, logits, row_loss, tokens;
    int sum;          /* ACCUMULATE; without one the sum begins here */
    int buffer;       /* what REDUCE, GATHER, ACCUMULATE, ROUND write */
    int staging;      /* REDUCE, GATHER: what the collective needs besides */
    zero_range range; /* ROUND, ACCUMULATE, NORM, UPDATE: of the group's flat space */
    zero_type type;   /* ACCUMULATE: what `in` is rounded to */

    /* LOAD, LOSS: microbatch m of rank r is number rank_stride*r + microbatch_stride*m of
     * the global batch. */
    int rank_stride, microbatch_stride;
    size_t live_bytes; /* of this rank, while the instruction runs */
} zero_instruction;

typedef struct {
    zero_instruction *code;
    int length, capacity;
} zero_program;

/* What a stage compiles for. */
typedef struct {
    const zero_model *model;
    int stage;
    zero_type type; /* of parameters and gradients */
    zero_partition_scheme partition;
    int n_ranks;         /* N_d */
    int64_t micro_batch; /* sequences per microbatch and rank */
    int64_t seq;         /* T */
    int accumulation;    /* M: microbatches per rank and step */
    bool reproducible;   /* the same bits at every world size; N_d, M powers of two */
    bool recompute;      /* activations twice instead of kept */
    int64_t bucket;      /* C_B, elements */
    int64_t prefetch;    /* stage 3: uses of parameters that are gathered ahead */
    int64_t persist;     /* stage 3: groups of so many elements stay whole */
    bool no_overlap;     /* every collective is waited for at once */
    bool forward_only;   /* no step: no gradients, no optimizer states, no masters */
    zero_algorithm collectives;
    const zero_layout
        *layout; /* borrowed, of n_ranks; NULL: every rank on a node of its own */
    int rank;    /* whose program this is */
} zero_plan_input;

/* How a group's data travels: what REDUCE and GATHER of it are. */
typedef struct {
    bool is_used;
    int in, out; /* buffers of the first instruction; later ones have the same form */
    zero_traffic traffic; /* what this rank moves each time */
} zero_exchange;

typedef enum { ZERO_HOLD_WHOLE, ZERO_HOLD_PIECE } zero_holding;

/* The memory of one group, by buffer index. */
typedef struct {
    zero_partition partition;
    zero_holding param_held, grad_held;
    zero_holding optimizer_held; /* who writes the parameters, also with forward_only */
    int param;
    int grad; /* what NORM and UPDATE read */
    int sum;  /* M > 1: the fp32 accumulator, which is `grad` if that is fp32; else none */
    int master, momentum, variance; /* none of these with forward_only */
    int gather_staging;
    zero_exchange reduce, gather;
} zero_group_state;

/* Bytes alive at once, at most: all classes together, and each at its own worst moment. */
typedef struct {
    size_t bytes, of_class[ZERO_CLASSES];
} zero_peak;

typedef struct {
    zero_plan_input input;
    zero_layout own_layout; /* where the input gives none; owned */
    zero_program programs[ZERO_PROGRAMS];
    zero_buffer *buffers;
    int n_buffers, buffer_capacity;
    zero_group_state *groups; /* [model->n_groups] */
    int scratch;              /* workspace of the backend */

    size_t persistent[ZERO_SPACES]; /* bytes of what lives for the whole run: the start */
    size_t extent[ZERO_SPACES];     /* bytes in all */
    size_t own_bytes;               /* the rank's arena */
    size_t window_bytes; /* of the window, by this rank: its part, and its share of
                                       what is the node's */
    size_t peak_bytes;   /* alive at once, at most; arena and window minus gaps */
    size_t class_peak[ZERO_CLASSES];  /* each class at its own worst instruction */
    zero_peak peak_of[ZERO_PROGRAMS]; /* the same, program by program */
    zero_program_kind peak_program;   /* where peak_bytes is reached first */
    int peak_at;
    zero_status status;         /* of the building calls below */
    zero_instruction discarded; /* what emit() returns when there is no memory */
} zero_schedule;

/* Compiles input->model for input->stage and lays memory out. ZERO_ERR_INVALID unless all
 * numbers are in range, the model has at most 2^56 parameters and takes the sequences, a
 * microbatch has at most 2^24 tokens, a step at most 2^17 microbatches per rank, the bucket
 * holds the smallest pieces that N_d ranks can exchange, and for `reproducible` N_d and M are
 * powers of two; ZERO_ERR_NOMEM. Not collective; release with _destroy. */
ZERO_NODISCARD zero_status zero_schedule_compile(zero_schedule *s,
                                                 const zero_plan_input *input);
void zero_schedule_destroy(zero_schedule *s);

#define ZERO_MAX_OPERANDS (2 * ZERO_UNIT_GROUPS + 14)
/* The buffers that an instruction names, ZERO_NO_BUFFER among them; returns how many. */
int zero_instruction_operands(const zero_instruction *i, int list[ZERO_MAX_OPERANDS]);

const char *zero_op_name(zero_op op);                     /* "FORWARD" */
const char *zero_class_name(zero_class cls);              /* "optimizer states" */
const char *zero_program_name(zero_program_kind program); /* "step" */

const zero_layout *
zero_schedule_layout(const zero_schedule *s); /* which ranks share nodes */

/* Bytes that a buffer costs this rank: of the node's, its share. */
size_t zero_schedule_cost(const zero_schedule *s, const zero_buffer *b);

/* The buffer that LOAD fills: inputs of so many positions, and from here on the targets. */
size_t zero_schedule_targets_at(const zero_model *model, int64_t positions);

/* ---- collectives of a group ---- */

/* How many collectives REDUCE or GATHER of group g is: one, or with `owner` one per rank that
 * owns a piece of it. */
int zero_schedule_collectives(const zero_schedule *s, int g);
/* The k-th of them; the bucket bounds its staging, except for `mpi`, which decides for
 * itself. */
zero_collective_spec zero_schedule_collective(const zero_schedule *s, zero_op op, int g,
                                              int k);
/* Where in an instruction's staging the k-th one's begins, in bytes; for k = how many, the bytes
 * of all. */
size_t zero_schedule_staging(const zero_schedule *s, zero_op op, int g, int k);
/* What REDUCE or GATHER moves on this rank; nothing for others. */
zero_traffic zero_instruction_traffic(const zero_schedule *s, const zero_instruction *i);
/* The kinds of collectives that REDUCE and GATHER are, by scheme of partition. */
extern const zero_collective_kind zero_kinds_that_reduce[2], zero_kinds_that_gather[2];
/* What a program moves on this rank in collectives of one kind. */
zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_program_kind program,
                                   zero_op op);

/* ---- for the files of this folder that write schedules ---- */

/* A buffer, of 0 bytes as well, and an instruction that names nothing yet. A failure is kept
 * in s->status. */
int zero_schedule_add_buffer(zero_schedule *s, zero_buffer buffer);
zero_instruction *zero_schedule_emit(zero_schedule *s, zero_program_kind program,
                                     zero_op op);
/* schedule_memory.c: places every buffer. */
ZERO_NODISCARD zero_status zero_schedule_lay_out(zero_schedule *s);
/* schedule_exchange.c: refuses what cannot be exchanged; counts what instructions move. */
ZERO_NODISCARD zero_status zero_schedule_check_exchange(const zero_schedule *s);
ZERO_NODISCARD zero_status zero_schedule_count_traffic(zero_schedule *s);
/* Whether data of groups lies in the node's window. */
bool zero_schedule_shares(const zero_schedule *s);

/* The stages: who holds what, and the programs. */
void zero_stage_none_compile(zero_schedule *s);   /* 0: everything is replicated */
void zero_stage_os_compile(zero_schedule *s);     /* 1: P_os */
void zero_stage_os_g_compile(zero_schedule *s);   /* 2: P_os+g */
void zero_stage_os_g_p_compile(zero_schedule *s); /* 3: P_os+g+p */
