#include "comm/mpi_call.h"

#define TILE 512 /* elements */

/* MPI_FLOAT for what MPI can add itself; the others go as bits. */
MPI_Datatype zero_mpi_type(zero_type type)
{
    return type == ZERO_FP32 ? MPI_FLOAT : MPI_UINT16_T;
}

static void add16(zero_type type, int len, const uint16_t *in, uint16_t *inout)
{
    float a[TILE], b[TILE];
    for (int at = 0; at < len; at += TILE) {
        int n = len - at < TILE ? len - at : TILE;
        zero_convert(type, ZERO_FP32, n, in + at, a);
        zero_convert(type, ZERO_FP32, n, inout + at, b);
        for (int i = 0; i < n; i++) a[i] += b[i];
        zero_convert(ZERO_FP32, type, n, a, inout + at);
    }
}

static void add_bf16(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    add16(ZERO_BF16, *len, in, inout);
}

static void add_fp16(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    add16(ZERO_FP16, *len, in, inout);
}

zero_status zero_mpi_call_init(zero_collective *op)
{
    op->add = MPI_OP_NULL;
    if (op->steps.spec.algorithm != ZERO_ALGORITHM_MPI ||
        op->steps.spec.result == ZERO_FP32)
        return ZERO_OK;
    MPI_User_function *add = op->steps.spec.type == ZERO_BF16 ? add_bf16 : add_fp16;
    return zero_comm_check(MPI_Op_create(add, 1, &op->add), "MPI_Op_create");
}

void zero_mpi_call_destroy(zero_collective *op)
{
    if (op->steps.spec.algorithm == ZERO_ALGORITHM_MPI && op->add != MPI_OP_NULL)
        MPI_Op_free(&op->add);
}

zero_status zero_mpi_call_post(zero_collective *op, const zero_collective_step *step,
                               const void *from, void *to, MPI_Request *request)
{
    MPI_Comm mpi = op->comm->mpi;
    MPI_Datatype type = zero_mpi_type(step->type);
    MPI_Op add = op->add == MPI_OP_NULL ? MPI_SUM : op->add;
    int len = (int)step->len;
    size_t piece = (size_t)op->comm->rank * (size_t)len * zero_type_size(step->type);
    switch (op->steps.spec.kind) {
    case ZERO_REDUCE_SCATTER:
        return zero_comm_check(
            MPI_Ireduce_scatter_block(from, to, len, type, add, mpi, request),
            "MPI_Ireduce_scatter_block");
    case ZERO_REDUCE:
        return zero_comm_check(
            MPI_Ireduce(from, to, len, type, add, op->steps.spec.root, mpi, request),
            "MPI_Ireduce");
    case ZERO_ALL_GATHER:
        return zero_comm_check(
            MPI_Iallgather(from == (char *)to + piece ? MPI_IN_PLACE : from, len, type, to,
                           len, type, mpi, request),
            "MPI_Iallgather");
    default:
        return zero_comm_check(MPI_Ibcast(to, len, type, op->steps.spec.root, mpi, request),
                               "MPI_Ibcast");
    }
}
