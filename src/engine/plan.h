/* plan.h - what a schedule costs, in numbers: the ledger of `zero plan`.
 *
 * No MPI, and no memory of the model's size. Bytes are one rank's, the schedule's. */
#pragma once

#include "sharding/schedule.h"

/* What the step's REDUCE or GATHER instructions are and move. */
typedef struct {
    int64_t collectives; /* an instruction is one, or (owner) one per owner of its group */
    zero_traffic traffic;
    double formula; /* bytes that zero_formula_volume() gives it, of padded groups */
} zero_plan_exchange;

typedef struct {
    size_t needed;                /* what zero_plan_needed() says */
    size_t at_peak[ZERO_CLASSES]; /* at the worst instruction; their sum is peak_bytes */
    size_t states;                /* parameters, gradients, optimizer states */
    double formula;               /* the same by zero_formula_state_bytes() */
    double padding;               /* what that formula gives to the groups' padding */
    int64_t padded;               /* elements of all groups, padding included */
    zero_plan_exchange reduce, gather;
} zero_plan_ledger;

/* What any process takes: program, libraries, MPI. */
#define ZERO_PROCESS_BYTES ((size_t)48 << 20)

/* Bytes of a process besides the plan's arena and window: itself, and the tables of the
 * schedule, which are large where a step has thousands of microbatches. */
size_t zero_plan_process(const zero_schedule *s);

/* Bytes that a rank takes: its arena, its part of the window, and its process. What runs are
 * refused by, and what --fit fits. */
size_t zero_plan_needed(const zero_schedule *s);

void zero_plan_add_up(const zero_schedule *s, zero_plan_ledger *ledger);

/* The ledger of what zero_schedule_compile() makes of the input; its status. */
ZERO_NODISCARD zero_status zero_plan_measure(const zero_plan_input *input,
                                             zero_plan_ledger *ledger);

/* Groups whose gathered parameters stay from a forward call of the step's first microbatch to
 * its backward pass: stage 3 gathers them once less, or not at all. Writes their numbers to
 * groups[], of the model's n_groups, and returns how many; *bytes is what they take. */
int zero_plan_kept(const zero_schedule *s, int *groups, size_t *bytes);
