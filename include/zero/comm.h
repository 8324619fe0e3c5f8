/* comm.h - the ranks that train together, as a group of the library's own.
 *
 * Your program calls MPI_Init and MPI_Finalize (thread level FUNNELED or higher, or SINGLE for
 * programs of one thread), and calls the library from the thread that initialized MPI. A group
 * duplicates its communicator, so its messages never meet the program's. Give each trainer and
 * each optimizer a group of its own, because a group counts the bytes that it moves.
 *
 * This is the only header of the library that names MPI. */
#pragma once

#include <mpi.h>

#include "zero/status.h"

ZERO_API_BEGIN

typedef struct zero_comm zero_comm;

/* Collective over `mpi`, which is not needed afterwards. The caller closes the group. If
 * nothing moves for `watchdog` seconds, calls that wait on the group fail with
 * ZERO_ERR_STALLED and say where each rank is; the program must then end all ranks with
 * MPI_Abort(..., zero_exit_code(status)). 0: no limit. ZERO_ERR_INVALID for MPI_COMM_NULL, an
 * intercommunicator or a negative limit; ZERO_ERR_NOMEM; ZERO_ERR_MPI. */
ZERO_NODISCARD zero_status zero_comm_open(MPI_Comm mpi, double watchdog, zero_comm **comm);

/* Collective over the group. Call it before MPI_Finalize, after closing everything that uses
 * the group. Accepts NULL. */
void zero_comm_close(zero_comm *comm);

/* This rank, 0 to size - 1 as in the communicator, and the size. Local. */
int zero_comm_rank(const zero_comm *comm);
int zero_comm_size(const zero_comm *comm);

ZERO_API_END
