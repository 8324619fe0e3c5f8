/* small.h - what small messages (control.h) count as, in a plan and in a run. No MPI.
 *
 * MPI chooses the way of most of them, so they count as if each rank sent its data directly
 * to each other. Spans go a way of our own, message by message. Where the number of ranks
 * is not a power of two, the lowest ranks form pairs, and the lower rank of a pair speaks
 * for both. Those that speak exchange what they have with one other per round, at twice the
 * distance each time, so what each has is always that of ranks in a row:
 *
 *     6 ranks           0   1   2   3   4   5
 *     pairs             0 <-1   2 <-3
 *     exchange          0 <---> 2       4 <-> 5
 *     exchange          0 <-----------> 4
 *                               2 <---------> 5
 *     the result        0-> 1   2-> 3 */
#pragma once

#include "lists/spec.h"

/* Adds to a rank's traffic an exchange of `bytes` with each of the other ranks. */
void zero_small_add_exchange(zero_traffic *t, const zero_layout *layout, int rank,
                             int64_t bytes);

/* The same for n numbers of `size` bytes that are reduced over the ranks. MPI gets at most
 * zero_small_reduced() of them at a time, because it needs several times their memory. */
void zero_small_add_reduced(zero_traffic *t, const zero_layout *layout, int rank, int64_t n,
                            size_t size);
int64_t zero_small_reduced(size_t size);

#define ZERO_VOTE_WORDS 3 /* that zero_comm_vote() reduces, of 8 bytes */

/* ---- spans ---- */

#define ZERO_SMALL_SPANS 64 /* in a message, at most: 58 KiB, received on the stack */

/* One rank's part of a round. */
typedef struct {
    int partner; /* meaningless if it neither sends nor receives */
    bool sends, receives;
    bool is_result; /* what travels is complete: it replaces what the receiver has */
} zero_small_round;

int zero_small_rounds(int size); /* of a group of `size` ranks */
zero_small_round zero_small_round_of(int size, int rank, int round);

/* Adds the messages of a round to a rank's traffic. */
void zero_small_add_round(zero_traffic *t, const zero_layout *layout, int rank,
                          const zero_small_round *round, int64_t bytes);
/* Adds those of merging n spans of `size` bytes. */
void zero_small_add_merged(zero_traffic *t, const zero_layout *layout, int rank, int64_t n,
                           size_t size);
