#include "comm/mpi_call.h"

#include "comm/mpi_error.h"
#include "lists/algorithm.h"

#define TILE 512 /* elements */

/* MPI adds floats itself; 16-bit values travel as bits. */
MPI_Datatype zero_mpi_type(zero_type type)
{
    if (type > ZERO_FP16) return MPI_BYTE;
    return type == ZERO_FP32 ? MPI_FLOAT : MPI_UINT16_T;
}

static void add16(zero_type type, int len, const uint16_t *in, uint16_t *inout)
{
    float a[TILE], b[TILE];
    for (int at = 0; at < len; at += TILE) {
        int n = (int)zero_min(len - at, TILE);
        zero_convert(type, ZERO_FP32, n, in + at, a);
        zero_convert(type, ZERO_FP32, n, inout + at, b);
        for (int i = 0; i < n; i++) a[i] += b[i];
        zero_convert(ZERO_FP32, type, n, a, inout + at);
    }
}

static void add_bf16(void *in, void *inout, int *len, ZERO_UNUSED MPI_Datatype *type)
{
    add16(ZERO_BF16, *len, in, inout);
}

static void add_fp16(void *in, void *inout, int *len, ZERO_UNUSED MPI_Datatype *type)
{
    add16(ZERO_FP16, *len, in, inout);
}

zero_status zero_mpi_call_init(zero_collective *op)
{
    const zero_collective_spec *spec = &op->steps.spec;
    op->add = MPI_OP_NULL;
    if (!zero_algorithm_get(spec->algorithm)->posts_mpi_collectives ||
        spec->result == ZERO_FP32)
        return ZERO_OK;
    MPI_User_function *add = spec->type == ZERO_BF16 ? add_bf16 : add_fp16;
    return zero_mpi(MPI_Op_create(add, 1, &op->add));
}

void zero_mpi_call_destroy(zero_collective *op)
{
    if (op->comm && op->add != MPI_OP_NULL && zero_mpi_is_up()) MPI_Op_free(&op->add);
}

zero_status zero_mpi_call_post(zero_collective *op, const zero_collective_step *step,
                               const void *from, void *to, MPI_Request *request)
{
    MPI_Comm mpi = op->comm->mpi;
    MPI_Datatype type = zero_mpi_type(step->type);
    MPI_Op add = op->add == MPI_OP_NULL ? MPI_SUM : op->add;
    int len = (int)step->len, root = op->steps.spec.root;
    switch (op->steps.spec.kind) {
    case ZERO_REDUCE_SCATTER:
        return zero_mpi(MPI_Ireduce_scatter_block(from, to, len, type, add, mpi, request));
    case ZERO_REDUCE:
        return zero_mpi(MPI_Ireduce(from, to, len, type, add, root, mpi, request));
    case ZERO_ALL_GATHER:
        /* MPI must be told if a piece is in place already. */
        if (from == (const char *)to + (size_t)op->comm->rank * (size_t)step->len *
                                           zero_element_size(step->type))
            from = MPI_IN_PLACE;
        return zero_mpi(MPI_Iallgather(from, len, type, to, len, type, mpi, request));
    case ZERO_ALL_REDUCE:
        return zero_mpi(MPI_Iallreduce(from == to ? MPI_IN_PLACE : from, to, len, type, add,
                                       mpi, request));
    case ZERO_BROADCAST: return zero_mpi(MPI_Ibcast(to, len, type, root, mpi, request));
    }
    return zero_mpi_check(MPI_ERR_OTHER, "a collective of an unknown kind");
}
