#include "comm/mpi_call.h"

#include "base/fail.h"
#include "comm/mpi_error.h"

/* 16-bit values, which are not added, travel as bits. */
MPI_Datatype zero_mpi_type(zero_type type)
{
    return type == ZERO_FP32 ? MPI_FLOAT : MPI_UINT16_T;
}

/* MPI must be told if a piece is in place already. */
static const void *gathered_from(const zero_collective *op,
                                 const zero_collective_step *step, const void *from,
                                 const void *to)
{
    size_t piece = (size_t)step->len * zero_type_size(step->type);
    const void *mine = (const char *)to + (size_t)op->comm->rank * piece;
    return from == mine ? MPI_IN_PLACE : from;
}

zero_status zero_mpi_call_post(zero_collective *op, const zero_collective_step *step,
                               const void *from, void *to, MPI_Request *request)
{
    MPI_Comm mpi = op->comm->mpi;
    MPI_Datatype type = zero_mpi_type(step->type);
    int len = (int)step->len, root = op->steps.spec.root, code = MPI_ERR_OTHER;
    switch (op->steps.spec.kind) {
    case ZERO_REDUCE_SCATTER:
        code = MPI_Ireduce_scatter_block(from, to, len, type, MPI_SUM, mpi, request);
        return zero_mpi_check(code, "MPI_Ireduce_scatter_block");
    case ZERO_REDUCE:
        code = MPI_Ireduce(from, to, len, type, MPI_SUM, root, mpi, request);
        return zero_mpi_check(code, "MPI_Ireduce");
    case ZERO_ALL_GATHER:
        code = MPI_Iallgather(gathered_from(op, step, from, to), len, type, to, len, type,
                              mpi, request);
        return zero_mpi_check(code, "MPI_Iallgather");
    case ZERO_BROADCAST:
        code = MPI_Ibcast(to, len, type, root, mpi, request);
        return zero_mpi_check(code, "MPI_Ibcast");
    }
    return zero_mpi_check(code, "a collective of an unknown kind");
}
