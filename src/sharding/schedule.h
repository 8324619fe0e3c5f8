/* schedule.h - a training step as data.
 *
 * A stage compiles a model into a schedule once: programs, which are flat arrays of small
 * instructions, and the buffers that these name. After that nothing decides anything;
 * interpreters walk the arrays. `run` executes them, `plan` adds up their bytes.
 *
 *     prologue    gathers the parameters that stay whole (stages 1 and 2)
 *     step        LOAD 0, FORWARD 0, ..., BACKWARD 2, REDUCE 3, BACKWARD 1, REDUCE_WAIT 3,
 *                 ... LOSS, NORM, OVERFLOW, COMPARE, UPDATE 0, GATHER 0, ...
 *     evaluate    LOAD 0, FORWARD 0..U-1, LOSS
 *     generate    FORWARD 0..U-1: one text, whose keys and values go to the cache, if there
 *                 is one
 *     token       FORWARD 0..U-1: the next position of each of plan.texts texts, by the
 *                 cache
 *     epilogue    waits for what the last step left in flight
 *
 * A step may leave gathers of updated parameters in flight. The next program, whichever it
 * is, waits for each group before its first use; a second wait for the same gather is over
 * at once.
 *
 * A buffer of a program lives from the first instruction that names it to the last. Buffers
 * of no program (parameters, optimizer states) live for the whole run. The cache of keys
 * and values lives in two programs, generate and token, and between them, until another
 * program is walked. All memory is laid out before step 1 (schedule_memory.h). A schedule
 * that is `forward_only` has no step, and of the model states the parameters alone.
 *
 * With `offload` optimizer states lie in a slower tier: with `offload_host` in the host's
 * memory beside a device (schedule_device.h), else in a file (offload.h), where UPDATE
 * works on one block at a time, between its FETCH and its STORE. With `lazy` these stand in
 * the next step, before the first use of the group.
 *
 * Nothing here communicates, and no memory of the model's size is needed. */
#pragma once

#include "base/fail.h"
#include "lists/algorithm.h"
#include "nn/model.h"
#include "sharding/ops.h"
#include "sharding/partition.h"
#include "sharding/plan_input.h"

/* The purpose of a byte of memory: the lines of the memory ledger. */
typedef enum {
    ZERO_CLASS_PARAMETERS,
    ZERO_CLASS_GRADIENTS, /* that live for the whole run: part of the model states */
    ZERO_CLASS_OPTIMIZER, /* master weights (of 16-bit runs) and the optimizer's states */
    ZERO_CLASS_GATHERED,  /* parameters held in pieces, while they are whole */
    ZERO_CLASS_IN_FLIGHT, /* a group's gradient from BACKWARD to REDUCE or ALL_REDUCE */
    ZERO_CLASS_ACCUMULATORS, /* M > 1: fp32 sums over microbatches */
    ZERO_CLASS_BUCKETS,      /* staging of collectives */
    ZERO_CLASS_SLOTS,        /* blocks of a file while they are in memory */
    ZERO_CLASS_KEPT,         /* inputs of units that are computed again */
    ZERO_CLASS_CACHE,        /* keys and values of the texts that are generated */
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
    ZERO_PROGRAM_TOKEN,
    ZERO_PROGRAM_EPILOGUE,
    ZERO_PROGRAMS,
    ZERO_PROGRAM_ALL = ZERO_PROGRAMS, /* of a buffer: it lives for the whole run */
    ZERO_PROGRAM_TEXT /* of a buffer: it lives while texts are generated (below) */
} zero_program_kind;

typedef enum {
    ZERO_SPACE_OWN,  /* where the backend computes: the rank's arena, or its device's */
    ZERO_SPACE_PART, /* the rank's part of the node's window, laid out alike on all ranks */
    ZERO_SPACE_NODE, /* once per node, in the window */
    ZERO_SPACE_HOST, /* with a device: the rank's own memory beside it; else empty */
    ZERO_SPACE_FILE, /* the rank's scratch file: no memory */
    /* The window of the TP group, as PART and NODE are of the ZeRO group. */
    ZERO_SPACE_TP_PART,
    ZERO_SPACE_TP_NODE,
    ZERO_SPACES
} zero_space;

#define ZERO_NO_BUFFER    (-1)
#define ZERO_BUFFER_ALIGN 64

/* It has no holes: plans are compared as bytes. */
typedef struct {
    zero_class class;
    zero_program_kind program;
    zero_space space;
    zero_type type; /* of its elements */
    size_t bytes;
    size_t offset;   /* in its space; a multiple of the schedule's `align` */
    int first, last; /* instructions between which it lives, both included */
    /* Of a group's data, which group, and the first element in its flat space. */
    int64_t group, begin;
} zero_buffer;

enum { ZERO_OPERANDS = 2 * ZERO_UNIT_GROUPS + 21 };

typedef struct {
    zero_op op;
    int unit; /* FORWARD, RECOMPUTE, BACKWARD, JOIN, KEEP, COLLECT, SAVE, RESTORE; others -1 */
    int part;       /* of the unit's pass, with shares; else ZERO_PART_ALL */
    int group;      /* of instructions that name a group; others -1 */
    int microbatch; /* of this rank, from 0; LOSS: the last one */
    /* JOIN, COLLECT, SEND, RECEIVE and their waits: index of the schedule's joins, or of
     * its messages; else -1 */
    int join;
    bool accumulate[ZERO_UNIT_GROUPS]; /* BACKWARD: `grad` has a sum already */
    union {
        /* Indices into the schedule's buffers, or ZERO_NO_BUFFER. */
        int operands[ZERO_OPERANDS];
        struct {
            int param[ZERO_UNIT_GROUPS],
                grad[ZERO_UNIT_GROUPS];          /* UPDATE, NORM: the first */
            int master, state[ZERO_MOST_STATES]; /* UPDATE; master: 16-bit types only */
            int in, out, stream, saved, work, logits, row_loss, tokens;
            int cache;         /* FORWARD, while generating: keys and values of all texts */
            int joint, joined; /* of a part that joins, that waits */
            int sum;           /* ACCUMULATE; ZERO_NO_BUFFER: the sum begins here */
            /* REDUCE, ALL_REDUCE, GATHER, JOIN, COLLECT, ACCUMULATE, ROUND, KEEP: the
             * result; RECEIVE: what comes; UPDATE: the slot; FORWARD: where KEEP will put
             * `in`, if that is in the node's memory. */
            int buffer;
            int staging; /* REDUCE, ALL_REDUCE, GATHER, JOIN, COLLECT */
            int file;    /* transfers: a buffer in the file */
            int host;    /* with a device: the host's side of a copy (schedule_device.h) */
            /* With check_compute, of passes: what BACKWARD changes, the gradients it adds
             * to and then `stream`; hashes of results, on the host. */
            int before, hashes;
        };
    };
    bool on_host; /* NORM, UPDATE: on the CPU beside a device, and all operands are there */
    zero_range range; /* ROUND, ACCUMULATE, NORM, UPDATE, copies: in the group's space */
    zero_type type;   /* ACCUMULATE: `in` is rounded to this type */

    /* LOAD, LOSS, and in a pipeline passes: microbatch m of rank r is number rank_stride*r
     * + microbatch_stride*m of the global batch. */
    int rank_stride, microbatch_stride;

    /* In the stream (zero_offload_is_of_stream()): the instruction after which this one may
     * run, earlier than it stands (engine/run_offload.c); -1: from the program's start. */
    int after;
    size_t live_bytes; /* of this rank, while the instruction runs; as peak_bytes */
} zero_instruction;

typedef struct {
    zero_instruction *code;
    int length;
    int64_t capacity;
} zero_program;

/* The route of a group's data. The buffers are those of the first REDUCE or GATHER; later
 * ones have the same form. */
typedef struct {
    bool is_used;
    int in, out;
    zero_traffic traffic; /* of this rank, each time */
} zero_exchange;

/* All JOINs of one kind and length do the same: a sum is a reduce-scatter of pieces,
 * then an all-gather of them; a gather is one all-gather. COLLECTs are gathers with rows
 * of their own. The buffers are those of the first such JOIN; later ones have the same
 * form. */
typedef struct {
    zero_join kind;
    bool collects; /* COLLECT; if in place, KEEP wrote each piece where it belongs */
    int64_t count; /* floats of `in`; of `out` as many, or (gather) that times the ranks */
    int in, out;   /* equal: in place */
    zero_traffic traffic; /* of this rank, each time */
} zero_join_exchange;

/* The kinds of messages between pipeline stages (writer_pipeline.c). */
typedef enum {
    ZERO_PIPE_OUTPUT,     /* of its last unit, to the next stage */
    ZERO_PIPE_GRADIENT,   /* of its input, to the stage before */
    ZERO_PIPE_FIRST,      /* of the first unit's output, to where that unit's BACKWARD is */
    ZERO_PIPE_PARAMETERS, /* of that unit, after UPDATE, to where its FORWARD is */
    ZERO_PIPE_CONTENTS
} zero_pipe_content;

/* A message of a rank to, or from, the same rank of another stage. */
typedef struct {
    zero_pipe_content content;
    int from, to; /* stages */
    zero_type type;
    int64_t count;
    zero_traffic traffic; /* of this rank, each time */
} zero_pipe_message;

typedef enum { ZERO_HOLD_WHOLE, ZERO_HOLD_PIECE } zero_holding;

enum { ZERO_GROUP_BUFFERS = 14 };

/* The memory of one group, by buffer index. */
typedef struct {
    zero_partition partition;
    bool is_here; /* this pipeline stage has its gradient and states; true without one */
    bool is_copy; /* another one has; this one has a copy of the parameters, for FORWARD */
    int stage;    /* which one has them */
    zero_holding param_held, grad_held;
    zero_holding optimizer_held; /* says who updates; set even if forward_only */
    union {
        int buffers[ZERO_GROUP_BUFFERS]; /* beginning with those of zero_array (checks.h) */
        struct {
            int param;                           /* ZERO_NO_BUFFER: in a file */
            int master, state[ZERO_MOST_STATES]; /* not with forward_only, or in a file */
            int grad;                            /* what NORM and UPDATE read */
            int sum; /* M > 1: the fp32 accumulator, which is `grad` if that is fp32 */
            int first_block; /* of n_blocks with these states in the file (offload.h) */
            int first_param_block;     /* of n_blocks with the parameters there */
            int late_grad, late_param; /* `delayed`: UPDATE's operands in the next step */
            int host_grad;  /* beside a device: what NORM and UPDATE read, like `grad` */
            int host_param; /* and what UPDATE writes; fp32: the masters */
            int gather_staging;
            int records; /* hashes of its states; not without check_memory */
        };
    };
    int n_blocks;
    /* With a device: the group's first double in `squares` and `squares_host`. It has as
     * many as zero_gradient_pieces() says of the range that NORM names. */
    int64_t first_square;
    zero_exchange reduce, gather;
    zero_exchange all_reduce; /* among replicas; in place: `in` is `out` */
} zero_group_state;

/* The most bytes alive at once: of all classes together, and of each class by itself. With
 * a device the first two are the device's, and the others the host's; without one these are
 * 0. */
typedef struct {
    size_t bytes, of_class[ZERO_CLASSES];
    size_t host_bytes, host_of_class[ZERO_CLASSES];
} zero_peak;

/* The place of this rank among those that shard together, and among their replicas:
 *
 *     N_d = 8, R = 2      rank 0 1 | 2 3 | 4 5 | 6 7      shard groups: neighbours, of
 *                                                         `size` R
 *                         replica 0   1     2     3       replica groups: R apart, of
 *                                                 `replicas`
 *
 * Without hybrid sharding R = N_d, so there is one replica. */
typedef struct {
    int size, rank;        /* R, and this rank's number in its shard group */
    int replicas, replica; /* N_d / R, and the number of this rank's shard group */
} zero_shard_place;

/* The pipeline stage whose program this is (writer_pipeline.c). Without a pipeline there is
 * one, with all units. */
typedef struct {
    int n_stages, stage;
    int first_unit, end_unit; /* whose FORWARD is here: [first_unit, end_unit) */
    /* The stage that has BACKWARD of the first unit: the one whose units share a group with
     * it, or stage 0. */
    int first_stage;
} zero_pipeline_place;

typedef struct {
    zero_plan_input input;
    const zero_model *model; /* the input's */
    zero_pipeline_place pipe;
    zero_shard_place shard;
    /* If not given; owned. */
    zero_layout own_layout, own_tp_layout, own_pp_layout, own_world_layout;
    zero_layout shard_layout, replica_layout; /* of this rank's groups, if R < N_d; owned */
    zero_program programs[ZERO_PROGRAMS];
    zero_buffer *buffers;
    int n_buffers;
    int64_t buffer_capacity;
    zero_group_state *groups;  /* [model->n_groups] */
    int64_t *cuts;             /* of their partitions, owned; or NULL */
    zero_join_exchange *joins; /* [n_joins], owned */
    int n_joins;
    int64_t join_capacity;
    zero_pipe_message *messages; /* [n_messages], owned */
    int n_messages;
    int64_t message_capacity;
    int scratch;             /* workspace of the backend */
    int check;               /* workspace of checks (checks.h), or ZERO_NO_BUFFER */
    int update_room;         /* of updates of matrices beside a device, likewise */
    int first_slot, n_slots; /* buffers for blocks of the file (offload.h) */
    int first_cache;         /* the caches of units 0, 1, ...; ZERO_NO_BUFFER without any */

    /* With a device (schedule_device.h); else ZERO_NO_BUFFER. */
    int first_tokens, n_tokens; /* LOAD of microbatch m: number m modulo n_tokens */
    int squares, squares_host;  /* doubles of NORM, a word of UPDATE; OVERFLOW reads them */
    int first_chunk;            /* ZERO_HOST_CHUNKS buffers: states on their way */

    size_t align; /* of buffers: ZERO_BUFFER_ALIGN, or what a file's transfers need */
    size_t persistent[ZERO_SPACES]; /* bytes that live for the whole run; they come first */
    size_t cached[ZERO_SPACES];     /* bytes of ZERO_PROGRAM_TEXT, above those */
    size_t extent[ZERO_SPACES];     /* bytes in all */
    size_t own_bytes;               /* the rank's arena; with a device: the device's */
    size_t host_bytes;              /* with a device: the rank's arena beside it */

    /* This rank's part of the node's window, and its share of what lies there once. */
    size_t window_bytes;
    size_t tp_window_bytes; /* the same of the TP group's */

    /* Of all programs. */
    union {
        zero_peak peak;
        struct {
            size_t peak_bytes; /* alive at once: arena and window minus gaps */
            size_t class_peak[ZERO_CLASSES]; /* each class at its own worst instruction */
            size_t host_peak_bytes, host_class_peak[ZERO_CLASSES];
        };
    };
    zero_peak peak_of[ZERO_PROGRAMS]; /* the same, program by program */
    zero_program_kind peak_program;   /* where peak_bytes is reached first */
    int peak_at;                      /* with a device: the device's worst instruction */
    zero_status status;               /* of zero_schedule_add_buffer() and _emit() */
    zero_instruction discarded;       /* what emit() returns when there is no memory */
} zero_schedule;

void zero_schedule_destroy(zero_schedule *s); /* accepts a zeroed one */

/* The nodes of the shard group's ranks, which exchange parameters and gradients. */
const zero_layout *zero_schedule_layout(const zero_schedule *s);
/* The nodes of all N_d ranks. */
const zero_layout *zero_schedule_data_layout(const zero_schedule *s);
/* The nodes of the TP group's ranks, of the pipeline's stages, and of all ranks, P*N_d*T
 * of them, in the order of the world: rank (s*N_d + d)*T + p. Without a shared model and a
 * pipeline, nothing and those of the N_d ranks. */
const zero_layout *zero_schedule_tp_layout(const zero_schedule *s);
const zero_layout *zero_schedule_pp_layout(const zero_schedule *s);
const zero_layout *zero_schedule_world_layout(const zero_schedule *s);
int zero_schedule_world_rank(const zero_schedule *s);
/* N_d*T: the ranks of a pipeline stage, which are neighbours there. */
int zero_schedule_stage_ranks(const zero_schedule *s);

/* True if BACKWARD of unit u is in this pipeline stage. */
bool zero_schedule_backs(const zero_schedule *s, int u);

/* A buffer, which may have 0 bytes. A failure is kept in s->status. */
int zero_schedule_add_buffer(zero_schedule *s, zero_buffer buffer);
/* A buffer for the whole run. */
int zero_schedule_hold(zero_schedule *s, zero_class cls, zero_space space, size_t bytes);
/* True if the program uses the buffer, which lives only there. Lifetimes are known. */
bool zero_buffer_is_of(const zero_buffer *b, zero_program_kind program);
/* True if the buffer lives throughout the program: for the whole run, or while texts are
 * generated. */
bool zero_buffer_lives_through(const zero_buffer *b, zero_program_kind program);

/* True for generate and token, whose batches are texts. */
static inline bool zero_program_generates(zero_program_kind program)
{
    return program == ZERO_PROGRAM_GENERATE || program == ZERO_PROGRAM_TOKEN;
}
/* True if texts are generated with a cache: there is a program for a token. */
bool zero_schedule_has_cache(const zero_schedule *s);
/* The shape of a program's batches: samples, and positions of each. */
int64_t zero_program_samples(const zero_schedule *s, zero_program_kind program);
int64_t zero_program_positions(const zero_schedule *s, zero_program_kind program);
/* The pass of a unit that its FORWARD, RECOMPUTE or BACKWARD is there. */
zero_pass zero_program_pass(zero_program_kind program, zero_op op);

/* An instruction without operands, at the end of a program; valid until the next one. A
 * failure is kept in s->status. */
zero_instruction *zero_schedule_emit(zero_schedule *s, zero_program_kind program,
                                     zero_op op);

/* LOAD fills one buffer: first the inputs of this many positions, from here on the
 * targets. */
size_t zero_schedule_targets_at(const zero_model *model, int64_t positions);

const char *zero_class_name(zero_class cls); /* "optimizer states" */
/* The legend of "buckets": "staging of collectives". */
const char *zero_class_meaning(zero_class cls);
const char *zero_program_name(zero_program_kind program); /* "step" */
