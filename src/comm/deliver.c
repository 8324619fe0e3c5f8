#include "comm/deliver.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "comm/comm.h"
#include "comm/mpi_error.h"
#include "comm/operation.h"
#include "comm/wait.h"

#define TAG 0 /* as in merge.c: no two functions send from rank to rank at once */

/* Room on rank 0 for what arrives. */
typedef struct {
    double *sizes; /* [size] */
    char *room;    /* for the largest */
} desk;

static zero_status await(zero_comm *comm, size_t bytes, MPI_Request *request)
{
    zero_operation what = zero_operation_control(
        ZERO_OPERATION_MESSAGE, comm->control_sequence - 1, (int64_t)bytes, -1);
    return zero_wait_message(comm, &what, request);
}

static void count(zero_comm *comm, int peer, bool is_sent, size_t bytes)
{
    zero_traffic *t = &comm->traffic[ZERO_CONTROL];
    const int *node_of = comm->layout.node_of;
    zero_reach reach = node_of[peer] == node_of[comm->rank] ? ZERO_INSIDE : ZERO_ACROSS;
    zero_traffic_count(t, reach, is_sent, 1, (int64_t)bytes);
}

static zero_status send(zero_comm *comm, const char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += ZERO_DELIVERED) {
        size_t len = zero_min_size(bytes - at, ZERO_DELIVERED);
        MPI_Request request;
        ZERO_TRY(zero_mpi_check(
            MPI_Isend(data + at, (int)len, MPI_BYTE, 0, TAG, comm->control, &request),
            "MPI_Isend to rank 0"));
        count(comm, 0, true, len);
        ZERO_TRY(await(comm, len, &request));
    }
    return ZERO_OK;
}

/* After a failure of `take` the others still send, so this rank still receives. */
static zero_status receive_all(zero_comm *comm, const desk *d, const void *own,
                               zero_delivery *take, void *arg)
{
    zero_failure kept = zero_failure_keep(take(arg, 0, own, (size_t)d->sizes[0]));
    for (int rank = 1; rank < comm->size; rank++) {
        size_t bytes = (size_t)d->sizes[rank];
        for (size_t at = 0; at < bytes; at += ZERO_DELIVERED) {
            size_t len = zero_min_size(bytes - at, ZERO_DELIVERED);
            MPI_Request request;
            ZERO_TRY(zero_mpi_check(MPI_Irecv(d->room + at, (int)len, MPI_BYTE, rank, TAG,
                                              comm->control, &request),
                                    "MPI_Irecv on rank 0"));
            count(comm, rank, false, len);
            ZERO_TRY(await(comm, len, &request));
        }
        if (kept.status == ZERO_OK)
            kept = zero_failure_keep(take(arg, rank, d->room, bytes));
    }
    return zero_failure_restore(&kept);
}

static zero_status deliver(zero_comm *comm, desk *d, const void *data, size_t bytes,
                           zero_delivery *take, void *arg)
{
    const double mine = (double)bytes;
    ZERO_TRY(zero_agree(comm, zero_new(&d->sizes, comm->size, "sizes of messages")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, 1, &mine, d->sizes));
    size_t most = 0; /* on rank 0 */
    for (int rank = 1; comm->rank == 0 && rank < comm->size; rank++)
        most = zero_max_size(most, (size_t)d->sizes[rank]);
    ZERO_TRY(zero_agree(comm, zero_new(&d->room, most, "bytes that a rank sends")));
    zero_status st =
        comm->rank == 0 ? receive_all(comm, d, data, take, arg) : send(comm, data, bytes);
    return zero_agree_after_files(comm, st);
}

zero_status zero_comm_deliver(zero_comm *comm, const void *data, size_t bytes,
                              zero_delivery *take, void *arg)
{
    desk d = {.sizes = NULL};
    zero_status st = deliver(comm, &d, data, bytes, take, arg);
    free(d.sizes);
    free(d.room);
    return st;
}
