/* comm.h - the ranks that train together, as a group of the library's own.
 *
 * Your program calls MPI_Init and MPI_Finalize (thread level FUNNELED or higher, or SINGLE
 * for programs of one thread), and calls the library from the thread that initialized MPI.
 * A group duplicates its communicator, so its messages never meet the program's. Give each
 * trainer and each optimizer a group of its own, because a group counts the bytes that it
 * moves.
 *
 * Functions that close take the address of a handle and set the handle to NULL, which all
 * other functions answer with ZERO_ERR_INVALID. A copy of a closed handle is as invalid as
 * a pointer after free().
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
 * MPI_Abort(..., zero_exit_code(status)). 0: no limit. ZERO_ERR_INVALID for MPI_COMM_NULL,
 * an intercommunicator, a negative limit, and before MPI_Init or after MPI_Finalize;
 * ZERO_ERR_NOMEM; ZERO_ERR_MPI. */
zero_status zero_comm_open(MPI_Comm mpi, double watchdog, zero_comm **comm);

/* Sets *comm to NULL. Trainers and optimizers on the group must be closed as well, before
 * or after: the group ends with its last user. Collective over the group, and to be called
 * before MPI_Finalize; later it frees memory alone. Accepts NULL and the address of a
 * NULL. */
void zero_comm_close(zero_comm **comm);

/* This rank, 0 to size - 1 as in the communicator, and the size; of NULL -1 and 0.
 * Local. */
int zero_comm_rank(const zero_comm *comm);
int zero_comm_size(const zero_comm *comm);

ZERO_API_END
