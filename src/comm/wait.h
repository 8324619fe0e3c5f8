/* wait.h - the one loop in which a rank waits for others.
 *
 * Each turn lets the collectives in flight on the group go on, asks the watchdog, looks for a
 * SIGTERM that nobody takes (sigterm.h), and lets other ranks have the processor, since they
 * may share it. For the other files of comm/. */
#pragma once

#include <mpi.h>

#include "comm/collective.h"
#include "comm/operation.h"
#include "comm/watch.h"
#include "zero/status.h"

/* Until the collective has ended. */
ZERO_NODISCARD zero_status zero_wait_collective(zero_collective *op);

/* Until the request, posted for `what`, has ended. */
ZERO_NODISCARD zero_status zero_wait_request(zero_comm *comm, zero_watch_state state,
                                             const zero_operation *what,
                                             MPI_Request *request);
