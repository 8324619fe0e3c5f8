/* lockstep.h - the ranks of a TP group in one process: passes of a model's units, part by part, by all
 * ranks in turn.
 *
 *     rank 0   part 0 ─┐          ┌─ part 1 ...        a join: the tree over the ranks, or their
 *     rank 1   part 0 ─┴── join ──┴─ part 1 ...        arrays one after the other
 *
 * The rules of zero_unit_part are checked on the way: all ranks describe a part alike; at most one join
 * is in flight; a part that joins defines all of `joint`, and nobody changes that before the wait.
 * What may not be read holds marks (nn/mark.h): `joined` except in a part that waits, workspace at
 * the start of a pass, `saved` before it is computed again.
 *
 * A model that is not shared has one rank, whose units are called whole. */
#pragma once

#include "support/math_test.h"

#include "nn/model.h"
#include "nn/share.h"

#define LOCKSTEP_RANKS 16
#define LOCKSTEP_UNITS 8 /* and groups, at most */

typedef struct {
    zero_model part;
    void *param[LOCKSTEP_UNITS]; /* by group, of the team's type */
    float *grad[LOCKSTEP_UNITS];
    float *out[LOCKSTEP_UNITS], *saved[LOCKSTEP_UNITS];
    float *stream, *work, *logits, *row_loss;
    float *joint, *joined;
    float *sent; /* what joint was when it was joined */
} lockstep_rank;

typedef struct {
    const zero_model *whole; /* borrowed */
    zero_share share;        /* the rank in it is not read */
    const zero_backend *backend;
    zero_type type;
    zero_batch batch;
    bool in_place; /* sums are: joined is joint, as with messages */

    /* The rest is lockstep_open()'s. */
    zero_math math;
    int64_t joint_floats;
    lockstep_rank ranks[LOCKSTEP_RANKS];
} lockstep;

/* Takes memory, and deals the parameters param[group], of whole groups, to the ranks. */
void lockstep_open(lockstep *l, test_pool *pool, float *const *param);
void lockstep_close(lockstep *l);

/* One unit's pass. FORWARD fills out and saved, BACKWARD works on stream and the gradients. A batch
 * without targets is for GENERATE alone. */
void lockstep_pass(lockstep *l, zero_pass pass, int unit);

/* All units forward, then backward; with `recompute` what backward reads is marked and computed
 * once more, which must give the same bits. */
void lockstep_train(lockstep *l, bool recompute);
/* All units by one of the other ways. */
void lockstep_walk(lockstep *l, zero_pass pass);

/* Writes a tensor's whole gradient, from all ranks; where several have it, they must be equal. */
void lockstep_gradient(const lockstep *l, int tensor, float *whole);
