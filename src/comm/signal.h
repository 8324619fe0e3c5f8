/* signal.h - how ranks of a node see how far their neighbours are.
 *
 * Every rank has a row of counters in shared memory that it alone writes. The collective
 * with sequence number q uses the counters q mod ZERO_SIGNALS; they go through (q, phase
 * 1), (q, phase 2), ..., and as sequence numbers only grow a counter never falls. The
 * group's first window makes them (window.h). */
#pragma once

#include "base/fail.h"
#include "zero/comm.h"

/* Collectives in flight are at most this far apart: stages 1 and 2 gather all groups at
 * once after an update, and a model has up to 10^4 (ZERO_MOST_LAYERS). */
#define ZERO_SIGNALS 16384

/* All that this rank wrote before is visible to ranks that see the phase. Local. */
void zero_signal_set(const zero_comm *comm, int64_t sequence, int64_t phase);

/* True if rank `peer` of this node has reached the phase. Local, does not wait. */
bool zero_signal_reached(const zero_comm *comm, int peer, int64_t sequence, int64_t phase);
