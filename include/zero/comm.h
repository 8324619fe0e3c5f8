/* comm.h - the ranks that train together, as a group of the library's own.
 *
 * A program starts and ends MPI itself (thread level FUNNELED or higher, or SINGLE for programs
 * of one thread) and calls the library from the thread that started it. A group copies the
 * communicator it is made from: its messages never meet the program's. Give each trainer and
 * each optimizer a group of its own, because a group counts what it moves.
 *
 * This is the only header of the library that names MPI. */
#pragma once

#include <mpi.h>

#include "zero/status.h"

typedef struct zero_comm zero_comm;

/* Collective over `mpi`, which is not needed afterwards. After `watchdog` seconds in which
 * nothing moves, calls that wait on the group fail with ZERO_ERR_STALLED and say where each
 * rank is; the program then ends all ranks, MPI_Abort(..., zero_exit_code(status)). 0: they
 * wait for ever. The group is the caller's, to be closed. ZERO_ERR_INVALID for MPI_COMM_NULL,
 * an intercommunicator or a negative number; ZERO_ERR_NOMEM; ZERO_ERR_MPI. */
ZERO_NODISCARD zero_status zero_comm_open(MPI_Comm mpi, double watchdog, zero_comm **comm);

/* Collective over the group, before MPI ends and after everything that uses the group is closed.
 * Accepts NULL. */
void zero_comm_close(zero_comm *comm);

/* 0 to the number of ranks - 1, as in the communicator; and that number. Local. */
int zero_comm_rank(const zero_comm *comm);
int zero_comm_size(const zero_comm *comm);
