/* mpi_call.h - one of MPI's own collectives as a step of ours, for algorithms that post
 * them. */
#pragma once

#include "comm/group.h"

/* Sets op->add to an MPI operation that adds 16-bit values; MPI_OP_NULL if op needs none.
 * Local. */
zero_status zero_mpi_call_init(zero_collective *op);
void zero_mpi_call_destroy(zero_collective *op); /* accepts a zeroed struct */

/* Posts the step on len elements from `from` to `to`, both packed. Collective. */
zero_status zero_mpi_call_post(zero_collective *op, const zero_collective_step *step,
                               const void *from, void *to, MPI_Request *request);

/* The MPI type in which values travel: bytes, if they are no zero_type. */
MPI_Datatype zero_mpi_type(zero_type type);
