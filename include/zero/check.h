/* check.h - one unit alone, against finite differences.
 *
 * It is for a new unit, before it is trained; it needs neither a trainer nor MPI_Init.
 *
 *     for (int u = 0; u < model.n_units; u++)
 *         check(zero_unit_check(&model, u, &source, NULL, NULL));
 *
 * The check calls the unit in fp32, as in training, on samples of the source, random inputs
 * and parameters near their initial values. It holds the gradient of the unit's input and
 * of each of its tensors against (f(x + h) - f(x - h)) / 2h: for single elements, the
 * largest among them, and for one random direction through all. It also finds results that
 * stay undefined, writing beyond a buffer's end, writing to what is only read, calls that
 * are not repeatable, `saved` that depends on `out` being there (recompute_without_out),
 * and gradients that are set where `accumulate` says to add.
 *
 * A mistake in few elements of a large tensor may remain unseen: raise `elements`. Nothing
 * here is collective, and nothing is kept. */
#pragma once

#include "zero/model.h"
#include "zero/status.h"
#include "zero/train.h"

ZERO_API_BEGIN

/* 0 or NULL stands for the default in brackets. */
typedef struct {
    int64_t B, T;        /* samples [2], positions of each [the model's, at most 4] */
    int64_t elements;    /* of each tensor that are compared one by one, at most [12] */
    int64_t seed;        /* of inputs, parameters and elements; not negative */
    double tolerance;    /* of a deviation, as below [0.02] */
    const char *backend; /* "cpu", "naive" [naive] */
} zero_unit_check_spec;

/* The worst that was found. */
typedef struct {
    char tensor[64];   /* its name; "in": the unit's input */
    int64_t element;   /* row-major; -1: the direction through all */
    double gradient;   /* as the unit says */
    double difference; /* as finite differences say, with the step h that came nearest */
    /* How far these two are apart, less rounding, in parts of the larger one. */
    double deviation;
} zero_unit_check_result;

/* Checks unit number `unit` of the model. `spec` and `worst` may be NULL.
 * ZERO_ERR_DIFFERENT, naming the tensor, the element and both numbers, if a gradient is
 * wrong; ZERO_ERR_INVALID, naming the tensor or the buffer, if the unit breaks another rule
 * of zero/model.h, or the arguments are out of range; ZERO_ERR_NOMEM. */
zero_status zero_unit_check(const zero_model *model, int unit, const zero_source *source,
                            const zero_unit_check_spec *spec,
                            zero_unit_check_result *worst);

ZERO_API_END
