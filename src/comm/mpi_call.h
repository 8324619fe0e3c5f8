/* native.h - MPI's own collectives as one step of ours, for the algorithm `mpi`. */
#pragma once

#include "comm/collective.h"

/* The operation that adds 16-bit values, in op->add; MPI_OP_NULL for others. Local. */
ZERO_NODISCARD zero_status zero_mpi_call_init(zero_collective *op);
void zero_mpi_call_destroy(zero_collective *op);

/* Posts the step on len elements from `from` to `to`, both packed. Collective. */
ZERO_NODISCARD zero_status zero_mpi_call_post(zero_collective *op,
                                              const zero_collective_step *step,
                                              const void *from, void *to,
                                              MPI_Request *request);

/* The MPI type of values of that type as they travel. */
MPI_Datatype zero_mpi_type(zero_type type);
