/* weights.h - where the values of a model's parameters come from, or go to: drawn at random, a
 * file of somebody else's, a checkpoint, an engine.
 *
 * Tensors have names and shapes; groups are the same numbers as they lie in memory. Nothing
 * here is collective. */
#pragma once

#include "nn/model.h"
#include "sharding/partition.h"

/* Whoever has the values of a model's tensors. */
typedef struct {
    /* out[end - begin] = elements [begin, end) of a tensor of the model, by its number,
     * row-major; what fails says which tensor, and why. */
    zero_status (*fill)(void *arg, int tensor, int64_t begin, int64_t end, float *out);
    void *arg;
} zero_weights;

/* out[] = elements [range) of a group's flat space; the padding is zeros. */
ZERO_NODISCARD zero_status zero_weights_fill(const zero_weights *weights,
                                             const zero_model *model, int group,
                                             zero_range range, float *out);

/* The initial weights that a seed gives; *drawn is borrowed. */
typedef struct {
    const zero_model *model;
    int64_t seed;
} zero_drawn_weights;
zero_weights zero_weights_drawn(zero_drawn_weights *drawn);
