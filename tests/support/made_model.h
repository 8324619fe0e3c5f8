/* made_model.h - artificial models: any groups, read by any units, of any sizes. They can be
 * compiled, but not computed. */
#pragma once

#include "nn/model.h"

#define MADE_PARTS  6
#define MADE_PASSES (ZERO_PASS_GENERATE + 1)

/* A unit's way through a pass: all is one part unless it says otherwise. */
typedef struct {
    int n; /* parts; 0: one */
    /* is_last is set by n. `count` is of one position; a sum's is a multiple of 3 then, and
     * all are of 8 (positions), so that 1, 2, 3, 4, 6 and 8 ranks divide it. */
    zero_unit_part part[MADE_PARTS];
} made_pass;

typedef struct {
    int n_groups, groups[ZERO_UNIT_GROUPS];
    bool backward_without_params, recompute_without_out;
    zero_unit_sizes sizes; /* of one position */
    made_pass passes[MADE_PASSES];
} made_unit;

/* Every group is read by a unit. Release with zero_model_destroy(). */
zero_model made_model(int n_groups, const int64_t *n_params, int n_units,
                      const made_unit *units);

/* The model becomes a rank's part of one that a TP group shares. Its groups keep their
 * lengths. */
void made_share(zero_model *model, zero_share share);

/* One to five groups of 0 to a few thousand parameters, read by one to six units, some by
 * three. The draw follows from *random, which moves on. */
zero_model made_random(uint64_t *random);

/* 0 .. n-1 */
int made_draw(uint64_t *random, int n);
