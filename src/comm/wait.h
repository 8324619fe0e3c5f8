/* wait.h - the one loop in which a rank waits for others.
 *
 * Each turn polls the collectives in flight on the group and its family, gives the watchdog
 * its turn, looks for a SIGTERM that the program does not take (sigterm.h), and yields the
 * processor, which ranks may share. For the other files of comm/. */
#pragma once

#include "comm/verdict.h"

/* What to wait for: that *done, which the poll sets, is true, or that the request or the
 * collective has ended, or that nothing is in flight on a group; a whole with its family. */
typedef struct {
    const bool *done;
    MPI_Request *request;
    const zero_collective *op;
    const zero_comm *idle;
    double until; /* on the clock (base/clock.h); 0: without a limit */
    bool naps;    /* beside threads that compute: sleeps between looks while they do */
} zero_awaited;

/* *ended: false if the limit of time came first. A caller that holds the lock keeps it. */
zero_status zero_wait_until(zero_comm *comm, zero_watch_state state,
                            const zero_operation *what, const zero_awaited *awaited,
                            bool *ended);

/* Waits until the collective has ended. */
zero_status zero_wait_collective(zero_collective *op);

/* Waits until the request, posted for `what`, has ended. */
zero_status zero_wait_request(zero_comm *comm, zero_watch_state state,
                              const zero_operation *what, MPI_Request *request);
/* The same for a message from one rank that arrives on the caller's stack or heap. After a
 * failure it is taken back: late, it would be written where that memory was. */
zero_status zero_wait_message(zero_comm *comm, const zero_operation *what,
                              MPI_Request *request);

#define ZERO_WAIT_TAG 0 /* no two functions send from rank to rank at once */

/* Sends or receives a small message, as a part of the operation that began last, which is
 * of this kind. */
zero_status zero_wait_send(zero_comm *comm, zero_operation_kind kind, int to,
                           const void *data, size_t bytes);
zero_status zero_wait_receive(zero_comm *comm, zero_operation_kind kind, int from,
                              void *data, size_t bytes);
