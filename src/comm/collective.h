/* collective.h - reduce-scatter, all-gather, reduce and broadcast that overlap with
 * computation.
 *
 * spec.h says what they do, algorithm_list.h how. A collective is a small program: a list
 * of steps for this rank (step.h), built once by init and run in order by progress as far
 * as messages and neighbours allow. It can be begun any number of times.
 *
 *     init -> begin -> progress ... progress -> wait -> begin -> ... -> destroy
 *
 * Between begin and the end (progress says done, or wait returns) the struct stays where it
 * is, and its buffers belong to the collective; those in a window belong to the collectives
 * of all the node's ranks. Several may be in flight on a group, if all ranks begin them in
 * the same order. Nothing allocates after init. Nothing moves unless the program, or its
 * progress thread (thread.h), calls progress, poll or wait. After a failed MPI call, or
 * ZERO_ERR_STALLED, only an abort is left. */
#pragma once

#include "comm/group.h"
#include "lists/algorithm.h"

/* Builds the program. Local, without messages: the status of zero_collective_check();
 * ZERO_ERR_NOMEM may befall one rank alone; ZERO_ERR_INVALID if the algorithm works in a
 * window and the group has none yet. */
zero_status zero_collective_init(zero_collective *op, zero_comm *comm,
                                 const zero_collective_spec *spec);

/* The same for data of a device (spec->on_device). The copies are borrowed until destroy;
 * begin, progress, poll and wait call them, and fail if they do. ZERO_ERR_UNSUPPORTED in a
 * group with a progress thread. */
zero_status zero_collective_init_on_device(zero_collective *op, zero_comm *comm,
                                           const zero_collective_spec *spec,
                                           const zero_copier *copier);

/* Of what all ranks have in common. */
uint32_t zero_collective_hash(const zero_collective_spec *spec);

/* Frees the program; accepts a zeroed struct. */
void zero_collective_destroy(zero_collective *op);

/* Collective over the group, never blocks. Buffers are the caller's.
 *   reduce-scatter   `out` may be this rank's own piece of `in`, if the types are equal
 *   all-gather       `in` may be this rank's own piece of `out`; if the node's ranks share
 *                    one `out`, it must not change before all of them have read it
 *   reduce           `out` matters on the root only, where it may be `in` if the types are
 *                    equal
 *   broadcast        `in` may be `out`, and matters on the root only
 * On a device the same holds for the device's arrays. Only what matters on a rank is
 * copied; where `in` is part of `out`, spec.in_place saves storing it again.
 * staging[zero_collective_staging() bytes], aligned to 64; NULL if that is 0. Elements of
 * `out` outside the window of `count` are not touched. ZERO_ERR_UNSUPPORTED if the oldest
 * collective in flight began too long ago for a node's counters (signal.h). */
zero_status zero_collective_begin(zero_collective *op, const void *in, void *out,
                                  void *staging);

/* The same for an operation that has its number in the group already; with spec->only, for
 * one of a pair's messages, which both ranks number in the same way and the others leave
 * out. */
zero_status zero_collective_begin_as(zero_collective *op, int64_t sequence, const void *in,
                                     void *out, void *staging);

/* Runs the steps that can run now, with arithmetic on a few chunks at most; never blocks.
 * *done tells whether the collective has ended, also when asked again. */
zero_status zero_collective_progress(zero_collective *op, bool *done);

/* Progress for every collective in flight on the group, or on any of its family (divide.h);
 * a compute loop calls it. The watchdog's limit applies to waits only: a caller that polls
 * has a patience of its own. */
zero_status zero_collective_poll(zero_comm *comm);
/* The same, and adds the time it took to *seconds. With nothing in flight it reads no
 * clock. */
zero_status zero_collective_poll_timed(zero_comm *comm, double *seconds);

/* Polls the group and its family until `op` has ended, which also moves all others in
 * flight: ranks may wait for theirs in different orders. Yields the processor, since ranks
 * may share one.
 *
 * ZERO_OK at once if `op` was never begun, or has ended since: even in its first step a
 * schedule may wait for a collective of the step before. */
zero_status zero_collective_wait(zero_collective *op);
