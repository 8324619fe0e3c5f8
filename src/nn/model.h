/* model.h - a model as the rest of the program sees it: tensors in groups, read by units.
 *
 *     tensors   what has a name and a shape: "h.3.mlp.c_fc.weight" [C, 4C]
 *     groups    tensors that live and travel together, end to end in one flat space
 *     units     steps of the forward pass; each reads one or two groups
 *
 * A group may be read by several units: the tied embedding is one group, read by the first
 * unit and the last. Describing a model takes no memory for its parameters, so one of 10^12
 * parameters is described as fast as a small one. Lengths count elements. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "math/backend.h"
#include "zero/status.h"

#define ZERO_UNIT_GROUPS 2 /* groups that one unit may read */

typedef enum { ZERO_INIT_ZEROS, ZERO_INIT_ONES, ZERO_INIT_NORMAL } zero_init_kind;

typedef struct {
    char name[64];      /* Hugging Face's for GPT-2 */
    int64_t rows, cols; /* a vector has one row */
    int64_t offset;     /* in its group's flat space */
    int group;
    bool
        decays; /* whether AdamW's weight decay acts on it: matrices, not gains and biases */
    zero_init_kind init;
    float init_std; /* of ZERO_INIT_NORMAL */
} zero_tensor;

typedef struct {
    char name[32];
    int first_tensor, n_tensors;
    int64_t n_params;
} zero_group;

/* The microbatch that a call works on. */
typedef struct {
    int64_t B, T;
    const void *inputs, *targets; /* [B,T] of the model's; targets NULL when generating */
    int64_t step, first_sample;   /* sample b of the call is first_sample + b of the step */
    float loss_seed;              /* d(objective)/d(loss of one position) */
} zero_batch;

/* One forward or backward call. All memory is the caller's, sized by zero_unit_sizes(). */
typedef struct {
    const zero_backend *backend;
    const zero_math *math;
    const zero_batch *batch;
    bool training; /* dropout acts; `saved` will be read by a backward call */

    zero_type type;                      /* of the parameters; a gradient is fp32 */
    const void *param[ZERO_UNIT_GROUPS]; /* the unit's groups, whole */
    float *grad[ZERO_UNIT_GROUPS];       /* backward: their gradients */
    bool
        accumulate[ZERO_UNIT_GROUPS]; /* false: the call defines every element of grad[k] */

    const float *in; /* the previous unit's output; NULL for the first */
    float *out;      /* forward */
    float *stream;   /* backward, in place: gradient of the output, then of the input */
    float *saved;    /* written forward, read backward */
    float *work;     /* contents matter only inside the call */
    float *
        logits; /* the last unit's: workspace, or [B,V] of the last position (generating) */
    float *row_loss; /* the last unit's: [B,T] */
} zero_call;

/* Floats that a unit needs for B samples of T positions. */
typedef struct {
    int64_t out, saved, forward_work, backward_work, logits, row_loss;
} zero_unit_sizes;

typedef struct zero_unit zero_unit;
struct zero_unit {
    char name[32];
    int index; /* among the units of its kind: the layer of a block */
    int n_groups, groups[ZERO_UNIT_GROUPS];
    const zero_tensor *tensors[ZERO_UNIT_GROUPS]; /* the first tensor of each group */
    const void *shape;                            /* the model's own description */
    bool backward_without_params; /* param[k] may be NULL in backward calls */

    zero_unit_sizes (*sizes)(const zero_unit *unit, int64_t B, int64_t T);
    /* The last unit's forward gives the loss of each row if there are targets and the call is
     * not training; when training it may leave the loss to its backward, which follows. */
    void (*forward)(const zero_unit *unit, const zero_call *call);
    void (*backward)(const zero_unit *unit, const zero_call *call);
};

typedef struct {
    zero_tensor *tensors; /* owned, like all below */
    zero_group *groups;
    zero_unit *units;
    void *shape;
    int n_tensors, n_groups, n_units;
    int64_t vocab, seq;               /* ids and positions that the first unit accepts */
    size_t input_bytes, target_bytes; /* of one position of a batch */
    int64_t n_params;                 /* the paper's Psi; padding not counted */
} zero_model;

void zero_model_destroy(zero_model *model);

/* Writes the initial values of a group's elements [begin, end) to out. They depend only on
 * the seed, the tensor and the element. Padding, which lies beyond n_params, is zero. */
void zero_model_init_params(const zero_model *model, int group, int64_t seed, int64_t begin,
                            int64_t end, float *out);

/* The last unit, in the order of the backward pass, that adds to a group's gradient; and the
 * first, which defines it. */
int zero_model_last_writer(const zero_model *model, int group);
int zero_model_first_writer(const zero_model *model, int group);
