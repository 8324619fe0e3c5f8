/* ops.h - the table of instructions (ops.def): kinds of work, groups of ranks, words.
 *
 * All that shows, times, traces, counts or simulates programs reads this table. Only matrix
 * products, exchanges and transfers take time: sums, the optimizer and disturbances do
 * not. */
#pragma once

#include "lists/member.h"

typedef enum {
#define OP(name, ...) ZERO_OP_##name,
#include "sharding/ops.def"
    ZERO_OP_KINDS
} zero_op;

typedef enum {
    ZERO_WORK_FREE,     /* no time */
    ZERO_WORK_COMPUTE,  /* zero_work_flops() */
    ZERO_WORK_EXCHANGE, /* begins collectives among the ranks of `among` */
    ZERO_WORK_EXCHANGE_WAIT,
    ZERO_WORK_AGREE,    /* waits for small messages of all ranks */
    ZERO_WORK_TRANSFER, /* begins to read or write: zero_work_disk_seconds() */
    ZERO_WORK_TRANSFER_WAIT,
    ZERO_WORK_COPY, /* to or from a device, which may wait for it; no time without one */
} zero_work_kind;

/* The bytes that are shown beside an instruction (zero_plan_instruction_bytes()). */
typedef enum {
    ZERO_SHOWS_NOTHING,
    ZERO_SHOWS_SENT, /* this rank's messages */
    ZERO_SHOWS_TOKENS,
    ZERO_SHOWS_OUT, /* and what is saved */
    ZERO_SHOWS_SAVED,
    ZERO_SHOWS_GRADIENTS,
    ZERO_SHOWS_PLACE, /* the cost of `buffer` */
    ZERO_SHOWS_RANGE, /* of `buffer` */
    ZERO_SHOWS_PARAMETERS,
    ZERO_SHOWS_FILE, /* read and written */
    ZERO_SHOWS_HOST, /* the range in `host` */
} zero_op_shows;

/* What a transfer of the file moves, and is counted as. */
typedef enum {
    ZERO_MOVES_NOTHING,
    ZERO_MOVES_STATES, /* by updates, with the parameters that these read and write */
    ZERO_MOVES_PARAMETERS,
    ZERO_MOVES_ACTIVATIONS,
    ZERO_MOVES_FOR_VISITS, /* digests, checkpoints, initial values: no instruction does */
    ZERO_MOVES_KINDS
} zero_op_moves;

typedef struct {
    const char *name;    /* "ALL_REDUCE" */
    const char *meaning; /* "begins to add up the pieces of all replicas" */
    const char
        *category; /* in a trace: "compute", "communication", "disk"; NULL: "other" */
    zero_work_kind kind;
    zero_op begun_by; /* of exchanges, transfers and their waits */
    zero_family_part
        among; /* of exchanges and their waits: the group, or that of its shards */
    zero_op_shows shows;
    zero_op_moves moves;
    bool writes;         /* of a transfer: to the file */
    bool has_microbatch; /* gathers have none: parameters may be for the next one */
    bool
        is_of_stream; /* of optimizer states: may run ahead (zero_offload_is_of_stream()) */
} zero_op_row;

extern const zero_op_row zero_ops[ZERO_OP_KINDS];

/* The exchanges, in the order of ledgers. */
#define ZERO_EXCHANGES 7
extern const zero_op zero_exchange_ops[ZERO_EXCHANGES];

const char *zero_op_name(zero_op op); /* "FORWARD" */

/* Words and meanings stand side by side in 80 columns. */
#define ZERO_LEGEND_WORD 19
#define ZERO_LEGEND_TEXT 57

/* A change of memory that programs show beside their instructions, since no instruction
 * says it: the gradient of a group has been used for the last time (sharding/freed.h). */
#define ZERO_FREED_NAME    "(freed)"
#define ZERO_FREED_MEANING "a gradient in flight, after its last use; no instruction"
