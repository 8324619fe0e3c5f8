/* undefined.h - units that leave numbers undefined, found in a run's first step.
 *
 * Before a unit's call its results are filled with a NaN that arithmetic does not make, and
 * after the call nothing of it may be left: adding to it keeps it. So a gradient that a
 * unit forgets, or adds to where it should set it, is told by unit and tensor. Later steps
 * fill nothing. */
#pragma once

#include "engine/origin.h"

typedef enum {
    ZERO_UNDEFINED_OUTPUT,
    ZERO_UNDEFINED_GRADIENT, /* of a tensor */
    ZERO_UNDEFINED_STREAM,   /* the gradient of the unit's input */
    ZERO_UNDEFINED_LOSS,
} zero_undefined_kind;

/* The first undefined number of a walk on this rank; unit is -1 if all are defined. */
typedef struct {
    zero_undefined_kind kind;
    int unit, tensor; /* the tensor's number in the model, of a gradient */
    int64_t element;
} zero_undefined;

/* Around a unit's call in the first step. The second of each pair notes what is still
 * undefined. Local. */
void zero_undefined_before_forward(zero_runner *r, const zero_instruction *i,
                                   const zero_call *call);
void zero_undefined_after_forward(zero_runner *r, const zero_instruction *i,
                                  const zero_call *call, zero_undefined *first);
void zero_undefined_before_backward(zero_runner *r, const zero_instruction *i,
                                    const zero_call *call);
void zero_undefined_after_backward(zero_runner *r, const zero_instruction *i,
                                   const zero_call *call, zero_undefined *first);

/* ZERO_ERR_INVALID, saying what is undefined; ZERO_OK if nothing is. */
ZERO_NODISCARD zero_status zero_undefined_tell(const zero_model *model,
                                               const zero_undefined *first);
