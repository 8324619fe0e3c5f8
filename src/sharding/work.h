/* plan_work.h - which instruction takes time, and for what.
 *
 * All that tells times reads this one table: the alpha-beta model (plan_time.h), and the simulator,
 * which walks the programs of all ranks. Only matrix products, exchanges and transfers take time:
 * sums, the optimizer and disturbances do not. */
#pragma once

#include "lists/member.h"
#include "sharding/schedule.h"

typedef enum {
    ZERO_WORK_FREE,     /* no time */
    ZERO_WORK_COMPUTE,  /* zero_work_flops() */
    ZERO_WORK_EXCHANGE, /* begins collectives: zero_work.part says among which ranks */
    ZERO_WORK_EXCHANGE_WAIT,
    ZERO_WORK_AGREE,    /* waits for small messages of all ranks */
    ZERO_WORK_TRANSFER, /* begins to read or write: zero_work_disk_seconds() */
    ZERO_WORK_TRANSFER_WAIT,
    ZERO_WORK_COPY, /* to or from a device, which may wait for it; no time without one */
} zero_work_kind;

typedef struct {
    zero_work_kind kind;
    zero_op begun_by; /* exchange wait: the instruction that began it */
    /* Exchanges and their waits: ZERO_SHARD_GROUP, ZERO_REPLICA_GROUP or ZERO_TP_GROUP. */
    zero_family_part part;
} zero_work;

zero_work zero_work_of(zero_op op);

/* The nodes of the ranks among which an instruction of kind EXCHANGE communicates. */
const zero_layout *zero_work_layout(const zero_schedule *s, zero_op op);

/* Flops of a unit's forward pass over a microbatch, and of its recomputation, which leaves the output
 * out if the unit can. BACKWARD counts as two forward passes. */
double zero_plan_forward_flops(const zero_plan_input *input, int unit);
double zero_plan_recompute_flops(const zero_plan_input *input, int unit);

/* Flops of an instruction; 0 unless it computes. A part has an equal share of its pass, or none if it
 * only takes what others joined. *share: of the pass; a walk's parts 0, 1, ... keep it. */
double zero_work_flops(const zero_schedule *s, const zero_instruction *i, double *share);

/* Seconds of a transfer that has the disk to itself; `read` and `write` are bytes per second. 0 if
 * `read` is 0. */
double zero_work_disk_seconds(const zero_schedule *s, const zero_instruction *i,
                              double read, double write);
