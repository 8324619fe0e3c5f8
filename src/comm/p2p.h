/* p2p.h - the pairwise exchange, as steps for collective.c to run.
 *
 * In round i = 1 .. size-1 rank r sends to r+i and receives from r-i (mod size), chunk
 * after chunk, so that at any moment each rank sends to one and receives from one. The
 * owner adds all terms of a chunk once they are there, so no partial sum ever travels.
 *
 *     reduce-scatter, 2 ranks, depth 2:      rank 0                 rank 1
 *     chunk 0                                receive <- 1, send     receive <- 0, send
 *     chunk 1                                receive <- 1, send     receive <- 0, send
 *                                            add chunk 0            add chunk 0
 *     chunk 2, in the staging of chunk 0     receive <- 1, send     ...
 *
 * Since steps run in order, a chunk of staging is reused only after its add. Every receive
 * stands one step before the send of its round, on all ranks at the same place in the list:
 * the rank that is furthest behind always finds its partners' steps posted, so nobody waits
 * in a circle as long as two requests may be in flight. */
#pragma once

#include "comm/collective.h"

/* Elements per step, at most. */
int64_t zero_p2p_chunk(const zero_collective_spec *spec, int size);

int64_t zero_p2p_staging(const zero_collective_spec *spec, int size);

/* Messages that a rank sends, and as many that it receives. */
int64_t zero_p2p_count_messages(const zero_collective_spec *spec, int size);

/* The length of the list that build fills. */
int64_t zero_p2p_count_steps(const zero_collective_spec *spec, int size);

void zero_p2p_build(const zero_collective_spec *spec, int rank, int size, zero_step *steps);
