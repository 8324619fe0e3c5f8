/* update.h - the optimizer over any part of a group.
 *
 * The arrays hold elements [range.begin, range.end) of the group's flat space: all of it,
 * or one rank's shard. Weight decay acts only on tensors that say so. */
#pragma once

#include "base/tree.h"
#include "math/rules.h"
#include "nn/model.h"
#include "sharding/partition.h"

typedef struct {
    int optimizer;
    zero_muon how; /* with the next: for tensors that move as a whole */
    float *room;
    zero_type type; /* of grad and param */
    const void *grad;
    void *param; /* 16-bit types: receives the rounded master; fp32: NULL */
    float *master;
    /* A tensor that keeps no such state is left out of its array. */
    float *state[ZERO_MOST_STATES];
    /* NULL, or where the update notes a parameter that was not its master, rounded
     * (math/backend.h). */
    uint64_t *changed;
} zero_update_state;

/* Those numbers of a step's input. */
zero_adamw zero_update_adamw(double lr, double beta1, double beta2, double eps,
                             double weight_decay);

/* ZERO_ERR_INVALID, with the number, unless an optimizer can work with it: 0 <= lr,
 * weight_decay, clip, 0 <= beta1, beta2 < 1, 0 < eps, all finite. */
zero_status zero_update_check(const zero_adamw *hyper, double clip);

/* The factor of gradients before the update: it undoes the loss scale and clips their norm
 * to `clip` (0: no clipping). `norm` is without the scale. */
float zero_update_grad_scale(double norm, double clip, double scale);

/* The squares of elements `range` of a flat space of n_params, as subtrees of the tree over
 * the whole space; x[0] is the first of them. Unless the range is empty, range.begin is a
 * multiple of ZERO_TREE_BLOCK, and so is range.end, unless it is n_params. */
zero_tree_span zero_gradient_squares(const zero_backend *backend, const zero_math *math,
                                     zero_type type, int64_t n_params, zero_range range,
                                     const void *x);

/* The same in two halves, for a backend whose sums the host cannot read at once: the sums
 * of the subtrees, sums[zero_gradient_pieces(range)] in the backend's memory; and their
 * span. */
int64_t zero_gradient_pieces(zero_range range); /* at most ZERO_TREE_SPAN_TERMS */
void zero_gradient_sums(const zero_backend *backend, const zero_math *math, zero_type type,
                        zero_range range, const void *x, double *sums);
zero_tree_span zero_gradient_span(int64_t n_params, zero_range range, const double *sums);

/* Floats of `room` for the elements `range` of a group. */
int64_t zero_update_room(int optimizer, const zero_model *model, int group,
                         zero_range range);

/* The tensor of a word that is not 0, and the element. */
int zero_update_changed(const zero_model *model, uint64_t changed, int64_t *element);

void zero_update_apply(const zero_backend *backend, const zero_math *math,
                       const zero_model *model, int group, zero_range range,
                       const zero_adamw *hyper, const zero_update_state *s);
