/* small.h - what small messages (control.h) count as, in a plan and in a run. No MPI.
 *
 * MPI chooses their way, so they count as if each rank sent its data directly to each other. */
#pragma once

#include "comm/spec.h"

/* Adds to a rank's traffic an exchange of `bytes` with each of the other ranks. */
void zero_small_add_exchange(zero_traffic *t, const zero_layout *layout, int rank,
                             int64_t bytes);

/* The same for n numbers of `size` bytes that are reduced over the ranks. MPI gets at most
 * zero_small_reduced() of them at a time, because it needs several times their memory. */
void zero_small_add_reduced(zero_traffic *t, const zero_layout *layout, int rank, int64_t n,
                            size_t size);
int64_t zero_small_reduced(size_t size);

#define ZERO_VOTE_WORDS 3 /* that zero_comm_vote() reduces, of 8 bytes */
