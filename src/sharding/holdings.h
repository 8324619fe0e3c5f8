/* holdings.h - who holds what: buffers of parameters, gradients and optimizer states.
 *
 * A group's data is held whole, or in pieces: then a rank has the elements that it owns. Where
 * ranks of a node share memory, whole parameters lie there once. So do the pieces of a single
 * node, which together are the whole. */
#pragma once

#include "sharding/schedule.h"

/* A buffer for data of group g. */
int zero_hold_buffer(zero_schedule *s, zero_program_kind program, zero_class cls, int g,
                     zero_holding what, zero_space space, zero_type type);

/* The parameters of group g, in shared memory where there is any. With offload_parameters a piece
 * lies in the file (offload.h). */
void zero_hold_parameters(zero_schedule *s, int g, zero_holding what);
/* The parameters of group g, whole, in each rank's own memory: plain data parallelism. */
void zero_hold_own_parameters(zero_schedule *s, int g);

/* The gradient of group g, which REDUCE leaves and NORM and UPDATE read; with M > 1 also the
 * accumulators of 16-bit types. `gathered`: a sum that was reduced in pieces becomes whole again.
 * Takes no memory if the schedule is forward_only. */
void zero_hold_gradients(zero_schedule *s, int g, zero_holding what, bool gathered);

/* Master weights (16-bit types), momentum and variance of group g, where the plan's `offload` says. With
 * updates beside a device also masters of fp32, and the host's sides of gradient and parameters. Takes
 * no memory if the schedule is forward_only. */
void zero_hold_optimizer(zero_schedule *s, int g, zero_holding what);

/* True if group g is updated in pieces but held whole: gathered after each update. */
bool zero_is_published(const zero_schedule *s, int g);
