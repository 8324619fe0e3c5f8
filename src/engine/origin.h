/* origin.h - where numbers came from that no unit should leave: not finite, undefined, or
 * not the same twice.
 *
 * A step whose gradient is not finite updates nothing. So the engine walks it again with a
 * search, which looks at every unit's output and gradients, and at gradients that were
 * rounded or added. Then ranks agree on the earliest instruction at which one of them found
 * something.
 *
 * In a run's first step a unit's results are filled before its call with a NaN that
 * arithmetic does not make, and after the call nothing of it may be left: adding to it
 * keeps it. So a gradient that a unit forgets, or adds to where it should set it, is told by unit
 * and tensor. Later steps fill nothing.
 *
 * With --check-compute each pass of a due step runs twice from the same inputs, before
 * anything that it computed is sent, and hashes of its results must be equal. A CPU that is wrong
 * now and then is found so, one that is always wrong in the same way is not. */
#pragma once

#include "state/runner.h"

#define ZERO_ORIGIN_OUTPUT (-1)
#define ZERO_ORIGIN_JOINT  (-2) /* of a backward pass */
#define ZERO_ORIGIN_LOSS   (-3)
#define ZERO_ORIGIN_STREAM (-4) /* the gradient of the unit's input */
#define ZERO_ORIGIN_SAVED  (-5)

/* A gradient that was rounded or added has unit -1. */
typedef struct {
    int at; /* the instruction; -1: nothing was found */
    int unit;
    int tensor; /* or one of those above */
    int microbatch;
    int64_t element; /* the first undefined one, or of a piece that differs */
    int64_t end;     /* of that piece */
} zero_origin;

/* Looks for numbers that are not finite in the results of a unit's call, and notes the
 * first of a walk on this rank. `i` is the present instruction. */
void zero_origin_look(zero_runner *r, const zero_instruction *i, const zero_call *call,
                      zero_origin *first);
/* Looks at `joint` before the other ranks of the TP group have its numbers, too. */
void zero_origin_look_at_joint(zero_runner *r, const zero_instruction *i,
                               const zero_unit_part *part, const zero_call *call,
                               zero_origin *first);
/* The result of ROUND or ACCUMULATE: elements i->range of the group, beginning at `x`. */
void zero_origin_look_at_sum(zero_runner *r, const zero_instruction *i, zero_type type,
                             void *x, zero_origin *first);

#define ZERO_ORIGIN_TEXT 256

/* Says in words where ranks met their first such number; `mine` is this rank's. Collective:
 * ZERO_ERR_NOMEM on all ranks. */
zero_status zero_origin_describe(zero_comm *comm, const zero_plan_input *plan,
                                 const zero_origin *mine, char text[ZERO_ORIGIN_TEXT]);

/* Around a unit's call in the first step. The second notes what is still undefined.
 * Local. */
void zero_undefined_before(zero_runner *r, const zero_instruction *i,
                           const zero_call *call);
void zero_undefined_after(zero_runner *r, const zero_instruction *i, const zero_call *call,
                          zero_origin *first);

/* ZERO_ERR_INVALID, saying what is undefined; ZERO_OK if nothing is. */
zero_status zero_undefined_tell(const zero_model *model, const zero_origin *first);

/* Around the two runs of a pass with --check-compute: keeps what BACKWARD changes, or puts
 * it `back`. */
void zero_twice_before(zero_runner *r, const zero_instruction *i, const zero_call *call,
                       bool back);
/* Hashes the results. With `first` it notes the first one whose hash has changed. */
void zero_twice_hash(zero_runner *r, const zero_instruction *i, const zero_call *call,
                     zero_origin *first);
/* ZERO_ERR_CORRUPTED, saying what differed on this rank in this step, from 0; ZERO_OK if
 * nothing did. Local. */
zero_status zero_twice_tell(const zero_runner *r, int64_t step, const zero_origin *first);
