/* flight.h - the collectives in flight on a group and its family, and the poll that moves
 * them.
 *
 * For the other files of comm/. The caller holds the group's lock (thread.h). */
#pragma once

#include "comm/operation.h"

/* Puts a collective whose buffers and sequence number are set in flight, and runs its first
 * steps. ZERO_ERR_UNSUPPORTED if the oldest in flight began ZERO_SIGNALS collectives
 * ago. */
zero_status zero_flight_begin(zero_collective *op);

/* Takes it out of the list, wherever it stands. */
void zero_flight_leave(zero_collective *op);

/* The collective, whose sequence number is set, as errors name it. */
zero_operation zero_flight_operation(const zero_collective *op);

/* Moves `only` and what its sends wait for (spec.in_turn), or with NULL all that are in
 * flight on the family's groups, as far as can be without waiting; answers the watchdogs of
 * other ranks. */
zero_status zero_flight_poll(zero_comm *comm, zero_collective *only);
