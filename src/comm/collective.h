/* collective.h - reduce-scatter, all-gather, reduce and broadcast, which go on while the caller
 * computes.
 *
 * What they do and which algorithms there are stands in spec.h. A collective is a small
 * program: a list of steps for this rank (step.h), built once by init and run in order by
 * progress as far as messages and neighbours allow. It can be begun as often as wanted.
 *
 *     init -> begin -> progress ... progress -> wait -> begin -> ... -> destroy
 *
 * Between begin and the end (progress says done, or wait returns) the struct stays where it
 * is, and its buffers belong to the collective; those in a window belong to the collectives
 * of all the node's ranks. Several may be in flight on a group, if all ranks begin them in
 * the same order. Nothing allocates after init; nothing moves unless somebody calls progress,
 * poll or wait, or a thread does (progress.h). After a failed MPI call, or ZERO_ERR_STALLED,
 * only an abort is left. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mpi.h>

#include "comm/algorithm.h"
#include "comm/group.h"
#include "zero/status.h"

/* Builds the program. Local, without messages: the status of zero_collective_check();
 * ZERO_ERR_NOMEM may befall one rank alone. shm and hier need a window on this group first
 * (ZERO_ERR_INVALID). */
ZERO_NODISCARD zero_status zero_collective_init(zero_collective *op, zero_comm *comm,
                                                const zero_collective_spec *spec);

/* Frees the program; accepts a zeroed struct. */
void zero_collective_destroy(zero_collective *op);

/* Collective over the group, never blocks. Buffers are the caller's.
 *   reduce-scatter   `out` may be this rank's own piece of `in`, if the types are equal
 *   all-gather       `in` may be this rank's own piece of `out`; if the node's ranks have one
 *                    `out`, it changes between gathers when all of them have read it
 *   reduce           `out` matters on the root only, where it may be `in` if the types are
 *                    equal
 *   broadcast        `in` may be `out`, and matters on the root only
 * staging[zero_collective_staging() bytes], aligned to 64; NULL if that is 0. Elements of
 * `out` outside the window of `count` are not touched. ZERO_ERR_UNSUPPORTED if so many
 * collectives are in flight that a node's counters do not suffice. */
ZERO_NODISCARD zero_status zero_collective_begin(zero_collective *op, const void *in,
                                                 void *out, void *staging);

/* Runs what can be run now, with arithmetic on a few chunks at most; never blocks. *done tells
 * whether the collective has ended, also when asked again. */
ZERO_NODISCARD zero_status zero_collective_progress(zero_collective *op, bool *done);

/* Progress for every collective in flight on the group: what a compute loop calls. The
 * watchdog's limit counts in waits only: a caller that polls may have its own patience. */
ZERO_NODISCARD zero_status zero_collective_poll(zero_comm *comm);
/* The same, and adds to *seconds what it took, unless nothing was in flight: then the clock is
 * not read for it. */
ZERO_NODISCARD zero_status zero_collective_poll_timed(zero_comm *comm, double *seconds);

/* Polls the group until `op` has ended, which helps all others in flight as well: ranks may
 * wait for theirs in different orders. Yields the processor, since ranks may share one.
 *
 * ZERO_OK at once if `op` was never begun, or has ended since it was: a schedule may wait for
 * what the step before began, in its first step, too. */
ZERO_NODISCARD zero_status zero_collective_wait(zero_collective *op);
