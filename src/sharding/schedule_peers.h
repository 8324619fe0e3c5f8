/* schedule_peers.h - the bytes that REDUCE, ALL_REDUCE, GATHER, JOIN and COLLECT move, by
 * peer (lists/peers.h). Small messages are left out, since MPI chooses their routes. */
#pragma once

#include "lists/member.h"
#include "lists/peers.h"
#include "sharding/schedule.h"

/* The group of the world among which the exchange is, for this rank. */
zero_member zero_exchange_member(const zero_schedule *s, zero_op op);

/* Adds what this rank moves in walks[program] walks of each program, by rank of the world.
 * Nothing in a world of more than ZERO_MOST_PEERS ranks. ZERO_ERR_NOMEM. */
zero_status zero_schedule_peers(const zero_schedule *s, const int64_t walks[ZERO_PROGRAMS],
                                zero_peer_bytes *bytes);

/* The same for one instruction, each time it is executed. Nothing for others than these. */
zero_status zero_instruction_peers(const zero_schedule *s, const zero_instruction *i,
                                   zero_peer_bytes *bytes);
