/* optimizer.h - AdamW over any part of a group.
 *
 * The arrays hold elements [range.begin, range.end) of the group's flat space: all of it in
 * stage 0, one rank's shard later. Weight decay acts on matrices only, as in GPT-2. */
#pragma once

#include "nn/model.h"
#include "sharding/partition.h"

typedef struct {
    const float *grad;
    float *param, *momentum, *variance;
} zero_optimizer_state;

void zero_optimizer_update(const zero_backend *backend, const zero_math *math,
                           const zero_model *model, int group, zero_range range,
                           const zero_adamw *hyper, const zero_optimizer_state *state);
