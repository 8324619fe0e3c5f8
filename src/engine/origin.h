/* origin.h - where the first number that is not finite came from.
 *
 * A step whose gradient is not finite updates nothing. So the engine walks it again with a
 * search, which looks at every unit's output and gradients, and at gradients that were
 * rounded or added. Then ranks agree on the earliest instruction at which one of them found
 * something. */
#pragma once

#include "state/runner.h"

#define ZERO_ORIGIN_OUTPUT (-1)
#define ZERO_ORIGIN_JOINT  (-2) /* of a backward pass */
#define ZERO_ORIGIN_LOSS   (-3)

/* A gradient that was rounded or added has unit -1. */
typedef struct {
    int at; /* the instruction; -1: all numbers were finite */
    int unit;
    int tensor; /* or one of the three above */
    int microbatch;
} zero_origin;

/* The search of one walk on this rank. */
typedef struct {
    bool is_on; /* otherwise nothing is looked at */
    zero_runner *r;
    zero_origin first;
} zero_origin_search;

zero_origin_search zero_origin_open(bool is_on, zero_runner *r);

/* `i` is the present instruction of the walk, `call` that of its unit. */
void zero_origin_look_at_output(zero_origin_search *s, const zero_instruction *i,
                                const zero_call *call);
/* Looks at `joint` before the other ranks of the TP group have its numbers, too. */
void zero_origin_look_at_joint(zero_origin_search *s, const zero_instruction *i,
                               const zero_unit_part *part, const zero_call *call);
void zero_origin_look_at_gradients(zero_origin_search *s, const zero_instruction *i,
                                   const zero_call *call);
/* The result of ROUND or ACCUMULATE: elements i->range of the group, beginning at `x`. */
void zero_origin_look_at_sum(zero_origin_search *s, const zero_instruction *i,
                             zero_type type, const void *x);

#define ZERO_ORIGIN_TEXT 256

/* Says in words where ranks met their first such number; `mine` is this rank's. Collective:
 * ZERO_ERR_NOMEM on all ranks. */
ZERO_NODISCARD zero_status zero_origin_describe(zero_comm *comm,
                                                const zero_plan_input *plan,
                                                const zero_origin *mine,
                                                char text[ZERO_ORIGIN_TEXT]);
