/* holdings.h - who holds what: buffers of parameters, gradients and optimizer states.
 *
 * A group's data is held whole, or in pieces: then a rank has the elements that it owns.
 * Where ranks of a node share memory, whole parameters lie there once. So do the pieces of
 * a single node, which together are the whole. */
#pragma once

#include "sharding/schedule.h"

/* A buffer for data of group g. */
int zero_hold_buffer(zero_schedule *s, zero_program_kind program, zero_class cls, int g,
                     zero_holding what, zero_space space, zero_type type);

/* The buffers of all groups that live for the whole run, as the row of the stage says:
 * parameters, in shared memory where there is any; gradients, which REDUCE leaves and NORM
 * and UPDATE read, with the accumulators of M > 1; masters (16-bit types), the optimizer's
 * states, where the plan's `offload` says. A forward_only schedule has parameters alone.
 * Groups of up to `persist` parameters stay whole. */
void zero_hold_groups(zero_schedule *s);

/* True if group g is updated in pieces but held whole: gathered after each update. */
bool zero_is_published(const zero_schedule *s, int g);
