/* wire.h - what links between nodes do, found by a trial, and how large messages should be.
 *
 * Ranks that send as they like fall out of the rounds of a pairwise exchange: one receives
 * from two others, and another from none, so a wire of 0.1 or 1 Gbit/s is busy for 0.72 to
 * 0.84 of the time. Smaller messages whose senders keep pace (spec.h: message) use 0.92 to
 * 1.00 of it (bench/results/2026-11-23-wire.md). At 0.6 to 1.8 GB/s of TCP between
 * processes of one machine neither is faster: steps took 0.8 to 1.2 times as long. */
#pragma once

#include "comm/group.h"

/* Tries the links and remembers them in comm->wire. The first rank of each node sends to the
 * next node's, all at the same time: as much as takes 2 ms, 1 MiB at most. On one node, or
 * with ranks that are threads: zeros. Collective over the group, a whole; blocks for about
 * 10 ms, and longer on links below 1 Gbit/s. ZERO_ERR_NOMEM on all ranks. */
zero_status zero_wire_try(zero_comm *comm);

/* Bytes of a message, for zero_collective_spec.message; 0 on fast links, and before a trial.
 * So many that those in flight fill the link twice, and at least as many as TCP sends
 * at once. Local. */
int64_t zero_wire_message(const zero_wire *wire);
