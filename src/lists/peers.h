/* peers.h - bytes by peer: from which rank to which rank data moves.
 *
 *                 to 0   1   2
 *     from 0     |   .   8   8 |     a row is what a rank sends: by message, or because the
 *          1     |   8   .   8 |     reader takes it through a window
 *          2     |   8   8   . |
 *
 * A rank knows the messages that it sends and what it reads through windows, but not who
 * reads its own part, so a matrix takes the counts of all ranks. Each row then adds up to
 * zero_traffic_sent() of its rank, and each column to the bytes_received. */
#pragma once

#include "lists/step.h"

#define ZERO_MOST_PEERS 64 /* ranks; in larger groups nothing is counted by peer */

/* The counts of one rank, by the other's number. */
typedef struct {
    int64_t sent[ZERO_MOST_PEERS]; /* by messages, to that rank */
    int64_t read[ZERO_MOST_PEERS]; /* through windows, from that rank, which so sent them */
} zero_peer_bytes;

/* Adds what the step moves, by rank of the group, as zero_steps_count() does in all. The
 * lists of a sum's terms must be there. */
void zero_steps_count_peers(const zero_steps *steps, const zero_collective_step *step,
                            zero_peer_bytes *bytes);

/* Adds `times` runs of the collective on rank `rank`, without MPI. Nothing in groups of
 * more than ZERO_MOST_PEERS. The status of zero_collective_check(), or ZERO_ERR_NOMEM. */
zero_status zero_collective_peers(const zero_collective_spec *spec,
                                  const zero_layout *layout, int rank, int64_t times,
                                  zero_peer_bytes *bytes);

/* Adds the counts of rank `rank` to matrix[n][n], n <= ZERO_MOST_PEERS. */
void zero_peers_add(int n, int64_t *matrix, int rank, const zero_peer_bytes *bytes);
