/* made_model.h - artificial models: any groups, read by any units, of any sizes. They can be
 * compiled, but not computed. */
#pragma once

#include "nn/model.h"

typedef struct {
    int n_groups, groups[ZERO_UNIT_GROUPS];
    bool backward_without_params, recompute_without_out;
    zero_unit_sizes sizes; /* of one position */
} made_unit;

/* Every group is read by a unit. Release with zero_model_destroy(). */
zero_model made_model(int n_groups, const int64_t *n_params, int n_units,
                      const made_unit *units);

/* One to five groups of 0 to a few thousand parameters, read by one to six units, some by
 * three. The draw follows from *random, which moves on. */
zero_model made_random(uint64_t *random);

/* 0 .. n-1 */
int made_draw(uint64_t *random, int n);
