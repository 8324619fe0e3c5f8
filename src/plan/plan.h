/* plan.h - what a schedule costs, in numbers: the ledger of `zero plan`.
 *
 * No MPI, and no memory of the model's size. Bytes are one rank's, the schedule's. */
#pragma once

#include "sharding/offload.h"
#include "sharding/schedule_device.h"

/* The step's REDUCE, GATHER, ALL_REDUCE, JOIN or COLLECT instructions, and what they
 * move. */
typedef struct {
    /* One for each instruction, or (owner) one per owner of its group; two for an
     * ALL_REDUCE and for a JOIN that sums. */
    int64_t collectives;
    zero_traffic traffic;
    /* The bytes of padded groups by zero_formula_volume(), or for ALL_REDUCEs by
     * zero_formula_all_reduced(); for JOINs and COLLECTs the bytes sent as messages by
     * zero_formula_tp_volume() and zero_formula_tp_gathered(). */
    double formula;
} zero_plan_exchange;

typedef struct {
    size_t needed;                /* what zero_plan_needed() says */
    size_t device_needed;         /* what zero_plan_device_needed() says */
    size_t at_peak[ZERO_CLASSES]; /* at the worst instruction; their sum is peak_bytes */
    size_t states;                /* parameters, gradients, optimizer states */
    /* The states by zero_formula_state_bytes(); of a pipeline stage those of its groups. */
    double formula;
    double padding; /* the formula's bytes for the groups' padding */
    int64_t padded; /* elements of all groups here, padding included */
    zero_plan_exchange reduce, gather;
    zero_plan_exchange all_reduce; /* among replicas; zeros without them */
    /* The TP group's; zeros without one, and without partition_activations. */
    zero_plan_exchange join, collect;
    zero_plan_exchange send, receive; /* between pipeline stages */
    zero_traffic control;             /* small messages of the step */
    zero_traffic compare;             /* of these, those of COMPARE */
    zero_copied_bytes copies;         /* of the step; logits: of each token generated */

    /* The scratch file, which is no memory: all zeros without offload. */
    size_t file[ZERO_CLASSES], file_bytes; /* by class; in all */
    size_t file_padding;                   /* of file_bytes: what only fills pages */
    zero_offload_traffic file_step;        /* of a step with an update */
} zero_plan_ledger;

/* Memory of any process: program, libraries, MPI. */
#define ZERO_PROCESS_BYTES ((size_t)48 << 20)

/* Bytes of a process without the plan's arena and windows: program and libraries, and the
 * tables of the schedule, which are large if a step has thousands of microbatches. */
size_t zero_plan_process(const zero_schedule *s);

/* Bytes that a rank takes on the host: its arena (with a device the one beside it), its
 * parts of both windows, and its process. This number decides whether a run is refused, and
 * what --fit fits. */
size_t zero_plan_needed(const zero_schedule *s);
/* Bytes that a rank takes on its device: the arena there; 0 without one. What the device's
 * library takes comes on top: ZERO_DEVICE_CONTEXT_BYTES. With a device --fit fits these. */
size_t zero_plan_device_needed(const zero_schedule *s);

/* Bytes of the memory that is scarcer: with a device what is needed there. */
size_t zero_plan_scarce(const zero_plan_input *input, const zero_plan_ledger *ledger);

/* The memory of a CUDA context with cuBLAS and its kernels: 692 MiB were measured (an H200,
 * CUDA 13.0, bench/results/2026-11-28-h200.md). */
#define ZERO_DEVICE_CONTEXT_BYTES ((size_t)704 << 20)

void zero_plan_add_up(const zero_schedule *s, zero_plan_ledger *ledger);

/* Plans of up to this many instructions compile in a fraction of a second. */
#define ZERO_PLAN_QUICK 10000

/* Bytes that zero_plan_needed() and zero_plan_device_needed() cannot fall below, and the
 * least number of instructions: compiling takes time in proportion, or with its square as
 * long as there are few (schedule_memory.h). */
typedef struct {
    size_t bytes, device_bytes;
    int64_t instructions;
} zero_plan_bound;

/* Takes milliseconds for any model. Fails as zero_schedule_least() does. */
zero_status zero_plan_least(const zero_plan_input *input, zero_plan_bound *least);

/* Compiles the input and adds it up; fails as zero_schedule_compile() does. */
zero_status zero_plan_measure(const zero_plan_input *input, zero_plan_ledger *ledger);

/* The groups whose gathered parameters stay from a forward call of the step's first
 * microbatch to its backward pass, so that they are gathered once less or not at all.
 * Writes their numbers to groups[n_groups] and returns how many there are; *bytes is their
 * size. */
int zero_plan_kept(const zero_schedule *s, int *groups, size_t *bytes);
