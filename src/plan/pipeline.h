/* pipeline.h - pipeline parallelism as programs: the alternative that the ZeRO paper
 * compares with.
 *
 * The model's units are dealt to P pipeline stages, in order. Stage s computes its units
 * for one microbatch after another. It takes its input from stage s-1 and gives its output
 * to stage s+1; their gradients travel back. D replicas of the pipeline share the
 * global batch, so there are D * P ranks: rank s*D + d is stage s of replica d. Only
 * `plan` walks these programs; no run does.
 *
 * The first of two stages, of four microbatches:
 *
 *     gpipe  F0 F1 F2 F3 | B3 B2 B1 B0           all microbatches are alive at once
 *     1f1b   F0 | F1 B0 | F2 B1 | F3 B2 | B3     at most P - s of them; the same bubble
 *
 * The first stage has the first unit, the last stage the last one, and the units between
 * them are dealt evenly. A group that units of several stages read, such as the tied
 * embedding, is held by each of these stages, and TIE adds up their gradients.
 *
 * Memory is that of a rank of ZeRO stage 0 with these units (sharding/writer.c), and the
 * messages of SEND and RECEIVE. A message's buffer stays with its sender until the next
 * SEND in the same direction, which waits until the neighbour has taken the message. So at
 * most one message is under way in each direction.
 *
 * Nothing here communicates, and no memory of the model's size is needed.
 * Sources: Huang et al., GPipe, arXiv:1811.06965; Narayanan et al., Megatron-LM,
 * arXiv:2104.04473, section 2.2 (1F1B); Harlap et al., PipeDream, arXiv:1806.03377. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sharding/plan_input.h"
#include "sharding/schedule.h"
#include "zero/status.h"

typedef enum {
    ZERO_PIPELINE_GPIPE,
    ZERO_PIPELINE_1F1B,
    ZERO_PIPELINE_KINDS
} zero_pipeline_kind;
const char *zero_pipeline_name(zero_pipeline_kind kind); /* "gpipe" */

typedef enum {
    ZERO_PIPE_LOAD,               /* microbatch m's tokens: the first and the last stage */
    ZERO_PIPE_RECEIVE_ACTIVATION, /* m's input, from the stage before */
    ZERO_PIPE_FORWARD,            /* m through all units of the stage */
    ZERO_PIPE_SEND_ACTIVATION,    /* begins to send m's output */
    ZERO_PIPE_RECEIVE_GRADIENT,   /* of m's output, from the stage after */
    ZERO_PIPE_BACKWARD,           /* m, with the recomputation that it needs */
    ZERO_PIPE_SEND_GRADIENT,      /* begins to send the gradient of m's input */
    ZERO_PIPE_TIE,    /* group g: its gradient, added up over the stages that have it */
    ZERO_PIPE_REDUCE, /* group g: the same over the replicas of the stage */
    ZERO_PIPE_UPDATE, /* group g: the optimizer step */
    ZERO_PIPE_OPS
} zero_pipe_op;
const char *zero_pipe_op_name(zero_pipe_op op); /* "FORWARD" */

typedef struct {
    zero_pipe_op op;
    int microbatch;    /* from 0; -1 for TIE, REDUCE, UPDATE */
    int group;         /* of TIE, REDUCE, UPDATE; else -1 */
    int64_t sent;      /* bytes that this rank sends */
    size_t live_bytes; /* the most that is alive while the instruction runs */
} zero_pipe_instruction;

/* The memory and the traffic of one rank of a stage in a step. */
typedef struct {
    size_t class_peak[ZERO_CLASSES]; /* each class at its own worst moment */
    size_t at_peak[ZERO_CLASSES];    /* at the moment when all classes together need most */
    size_t peak_bytes;
    size_t states; /* parameters, gradients, optimizer states */
    int peak_at;   /* index of the instruction at that moment */
    int live;      /* the most microbatches between their FORWARD and their BACKWARD */
    int64_t activations_sent, gradients_sent, tied_sent, reduced_sent; /* bytes */
} zero_pipe_ledger;

/* One stage of a pipeline. */
typedef struct {
    zero_pipe_instruction *code; /* [length], owned */
    int length;
    int64_t capacity;
    int first_unit, end_unit; /* its units: [first_unit, end_unit) */
    zero_pipe_ledger ledger;
} zero_pipe_stage;

/* A unit's groups among the other units of its stage. */
typedef struct {
    bool first[ZERO_UNIT_GROUPS]; /* no unit before it reads the group */
    bool last[ZERO_UNIT_GROUPS];  /* no unit after it does */
} zero_pipe_reads;

typedef struct {
    /* A plan of one replica's rank: n_ranks is D, accumulation the microbatches of a
     * pipeline and step. Stage, partition, file tier and layout mean nothing here. */
    zero_plan_input plan;
    int n_stages;   /* P */
    size_t staging; /* bytes that an all-reduce of gradients needs beside them */
} zero_pipeline_input;

typedef struct {
    zero_pipeline_kind kind;
    zero_pipeline_input input;
    zero_pipe_stage *stages;    /* [n_stages], owned */
    zero_pipe_reads *reads;     /* [n_units], owned */
    zero_unit_sizes *sizes;     /* [n_units], owned: of a microbatch */
    zero_partition *partitions; /* [n_groups], owned: a group as D ranks pad it */
    int *holders;               /* [n_groups], owned: stages that have the group */
} zero_pipeline;

/* Writes the programs, and adds up what they need and move. ZERO_ERR_INVALID unless
 * there is at least one microbatch and one replica, each stage has a unit other than the
 * model's first and last, so 1 <= P <= units - 2 (1 if there are fewer), and P times the
 * microbatches is at most 2^20; ZERO_ERR_NOMEM. Release with zero_pipeline_destroy(). */
ZERO_NODISCARD zero_status zero_pipeline_make(zero_pipeline *p, zero_pipeline_kind kind,
                                              const zero_pipeline_input *input);
void zero_pipeline_destroy(zero_pipeline *p); /* accepts a zeroed one */

/* The most stages that a model can be cut into. */
int zero_pipeline_most_stages(const zero_model *model);

/* In closed form: the microbatches alive on a stage, and the share of time in which ranks
 * are idle if all stages take equal times and messages take none: (P - 1) / (m + P - 1). */
int zero_pipeline_live_formula(zero_pipeline_kind kind, int n_stages, int stage,
                               int microbatches);
double zero_pipeline_bubble_formula(int n_stages, int microbatches);

/* ---- memory: pipeline_memory.c ---- */

/* Walks the program of a stage: fills in its ledger, and each instruction's bytes. */
void zero_pipeline_add_up(zero_pipeline *p, int stage);

/* True if a unit's forward pass is repeated before its BACKWARD: with --recompute all
 * but the last unit's, as in a step (sharding/writer.c). */
bool zero_pipeline_recomputes(const zero_pipeline *p, int unit);
