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

enum { ZERO_PROBE_ARRAYS = 14 + 3 * ZERO_UNIT_GROUPS };

typedef struct {
    const zero_model *model;
    const zero_unit *unit;
    int index;
    bool is_last;
    const zero_backend *backend;
    zero_math math;
    zero_batch batch;
    char *inputs, *targets;
    union {
        zero_probe_array arrays[ZERO_PROBE_ARRAYS];
        struct {
            zero_probe_array in, out, saved;
            zero_probe_array saved_again, out_again; /* copies */
            zero_probe_array forward_work, backward_work, logits, row_loss, stream;
            zero_probe_array d_out; /* the weights of the outputs in the objective */
            zero_probe_array d_in;  /* the unit's answer, kept */
            zero_probe_array param[ZERO_UNIT_GROUPS], grad[ZERO_UNIT_GROUPS];
            zero_probe_array d_param[ZERO_UNIT_GROUPS]; /* kept */
            zero_probe_array kept;                      /* values while they are moved */
            zero_probe_array scratch;
        };
    };
    zero_arena arena;
} zero_probe;

/* Takes memory, and fills samples, inputs and parameters. ZERO_ERR_INVALID if the model's
 * sizes for B samples of T positions are not sound; ZERO_ERR_NOMEM. */
zero_status zero_probe_init(zero_probe *p, const zero_model *model, int unit,
                            const zero_source *source, const zero_unit_check_spec *spec);
void zero_probe_destroy(zero_probe *p); /* accepts a zeroed probe */

/* A forward call, with or without its output. */
zero_status zero_probe_forward(zero_probe *p, bool wants_out);
/* A backward call after it. */
zero_status zero_probe_backward(zero_probe *p, bool accumulates);

/* The objective of the two calls: the outputs times d_out, or the losses times loss_seed;
 * *noise is how much rounding may change it. */
zero_status zero_probe_objective(zero_probe *p, double *value, double *noise);

/* A hash of what calls may only read: samples, input, parameters. */
uint64_t zero_probe_hash(const zero_probe *p);

/* ZERO_ERR_INVALID, naming the array, if a guard was changed. */
zero_status zero_probe_check_guards(const zero_probe *p);
