/* weights.h - where the values of a model's parameters come from: drawn at random, a
 * foreign file, a checkpoint, an engine.
 *
 * Tensors have names and shapes; groups are the same numbers as they lie in memory. Nothing
 * here is collective. */
#pragma once

#include "nn/model.h"
#include "sharding/partition.h"

/* A source of tensor values. */
typedef struct {
    /* out[end - begin] = elements [begin, end) of a whole tensor of the model, by its
     * number, row-major. A failure names the tensor. */
    zero_status (*fill)(void *arg, int tensor, int64_t begin, int64_t end, float *out);
    void *arg;
} zero_weights;

/* out[] = elements [range) of a group's flat space; padding is zeros. */
zero_status zero_weights_fill(const zero_weights *weights, const zero_model *model,
                              int group, zero_range range, float *out);

/* Initial weights drawn from a seed; *drawn is borrowed. */
typedef struct {
    const zero_model *model; /* or a rank's part of it */
    int64_t seed;
} zero_drawn_weights;
zero_weights zero_weights_drawn(zero_drawn_weights *drawn);
