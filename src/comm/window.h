/* window.h - memory that the ranks of a node share.
 *
 * A window holds arrays; each is one flat space over the node's ranks:
 *
 *     array    | rank 0's part | rank 1's part | ... |        part = bytes[array], the same
 *              ^ base                                         on all ranks
 *
 * so the ranks' parts are one array to all of them: an all-gather on a node is a pointer.
 * Collectives find neighbours' buffers by the distance between parts.
 *
 * A window is a file without a name in /dev/shm (O_TMPFILE), which the other ranks open
 * through /proc: nothing is left behind there, however the job ends. Its memory is reserved
 * when it is made, each rank's parts by that rank, so on the rank's NUMA node; a /dev/shm
 * that is too small is an error then and not a bus error later. A rank maps a page when it
 * touches it. */
#pragma once

#include "base/fail.h"
#include "zero/comm.h"

typedef struct zero_window {
    char *base; /* mapped; zeroed at first; aligned to pages, as all arrays are */
    size_t bytes;
    int local_rank, local_size;
    int n_arrays;
    size_t *offset; /* [n_arrays], owned */
} zero_window;

/* Collective over comm: one window on each of its nodes, each with n arrays of bytes[i] per
 * rank. The group's first window brings its signals (signal.h) along. The same verdict
 * everywhere: ZERO_ERR_ENV if a node cannot share that much memory, with the reason;
 * ZERO_ERR_NOMEM. */
zero_status zero_window_init(zero_window *window, zero_comm *comm, int n,
                             const size_t bytes[]);

/* Unmaps it here; the memory is freed when the node's last rank has done so, or has died.
 * Accepts a zeroed window. */
void zero_window_destroy(zero_window *window);

/* The array, as all ranks of the node see it: rank l's part begins at byte bytes[i] * l. */
char *zero_window_array(const zero_window *window, int i);
