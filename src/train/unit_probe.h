/* unit_probe.h - one unit with memory of its own, called as in training.
 *
 * Each array is followed by a guard, which no call may change. */
#pragma once

#include "base/arena.h"
#include "math/backend.h"
#include "zero/check.h"

/* n floats and the guard after them; NULL if the unit asked for none. */
typedef struct {
    const char *name;
    float *at;
    int64_t n;
} zero_probe_array;

enum {
    ZERO_PROBE_IN,
    ZERO_PROBE_OUT,
    ZERO_PROBE_SAVED,
    ZERO_PROBE_SAVED_AGAIN, /* a copy, like the next */
    ZERO_PROBE_OUT_AGAIN,
    ZERO_PROBE_FORWARD_WORK,
    ZERO_PROBE_BACKWARD_WORK,
    ZERO_PROBE_LOGITS,
    ZERO_PROBE_ROW_LOSS,
    ZERO_PROBE_STREAM,
    ZERO_PROBE_D_OUT, /* the weights of the outputs in the objective */
    ZERO_PROBE_D_IN,  /* the unit's answer, kept */
    ZERO_PROBE_PARAM, /* of each of its groups */
    ZERO_PROBE_GRAD = ZERO_PROBE_PARAM + ZERO_UNIT_GROUPS,
    ZERO_PROBE_D_PARAM = ZERO_PROBE_GRAD + ZERO_UNIT_GROUPS, /* kept */
    ZERO_PROBE_KEPT =
        ZERO_PROBE_D_PARAM + ZERO_UNIT_GROUPS, /* values while they are moved */
    ZERO_PROBE_SCRATCH,
    ZERO_PROBE_ARRAYS
};

typedef struct {
    const zero_model *model;
    const zero_unit *unit;
    int index;
    bool is_last;
    const zero_backend *backend;
    zero_math math;
    zero_batch batch;
    char *inputs, *targets;
    zero_probe_array arrays[ZERO_PROBE_ARRAYS];
    zero_arena arena;
} zero_probe;

/* Takes memory, and fills samples, inputs and parameters. ZERO_ERR_INVALID if the model's
 * sizes for B samples of T positions are not sound; ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_probe_init(zero_probe *p, const zero_model *model, int unit,
                                           const zero_source *source,
                                           const zero_unit_check_spec *spec);
void zero_probe_destroy(zero_probe *p); /* accepts a zeroed probe */

/* A forward call, with or without its output. */
ZERO_NODISCARD zero_status zero_probe_forward(zero_probe *p, bool wants_out);
/* A backward call after it. */
ZERO_NODISCARD zero_status zero_probe_backward(zero_probe *p, bool accumulates);

/* The objective of the two calls: the outputs times D_OUT, or the losses times loss_seed;
 * *noise is how much rounding may change it. */
ZERO_NODISCARD zero_status zero_probe_objective(zero_probe *p, double *value,
                                                double *noise);

/* A hash of what calls may only read: samples, input, parameters. */
uint64_t zero_probe_hash(const zero_probe *p);

/* ZERO_ERR_INVALID, naming the array, if a guard was changed. */
ZERO_NODISCARD zero_status zero_probe_check_guards(const zero_probe *p);
