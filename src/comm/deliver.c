#include "comm/deliver.h"

#include "comm/comm.h"
#include "comm/wait.h"

zero_status zero_comm_deliver(zero_comm *comm, const void *data, size_t bytes,
                              zero_delivery *take, void *arg)
{
    const double mine = (double)bytes;
    ZERO_FREED double *sizes = NULL;
    ZERO_FREED char *room = NULL; /* on rank 0: for the largest of the others */
    ZERO_TRY(zero_agree(comm, zero_new(&sizes, comm->size, "sizes of messages")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, 1, &mine, sizes));
    size_t most = 0;
    for (int rank = 1; comm->rank == 0 && rank < comm->size; rank++)
        most = zero_max_size(most, (size_t)sizes[rank]);
    ZERO_TRY(zero_agree(comm, zero_new(&room, most, "bytes that a rank sends")));
    zero_status st = ZERO_OK;
    if (comm->rank == 0) {
        /* After a failure of `take` the others still send, so this rank still receives. */
        zero_failure kept = zero_failure_keep(take(arg, 0, data, bytes));
        for (int rank = 1; st == ZERO_OK && rank < comm->size; rank++) {
            const size_t theirs = (size_t)sizes[rank];
            for (size_t at = 0; st == ZERO_OK && at < theirs; at += ZERO_DELIVERED)
                st = zero_wait_receive(comm, ZERO_OPERATION_MESSAGE, rank, room + at,
                                       zero_min_size(theirs - at, ZERO_DELIVERED));
            if (st == ZERO_OK && kept.status == ZERO_OK)
                kept = zero_failure_keep(take(arg, rank, room, theirs));
        }
        if (st == ZERO_OK) st = zero_failure_restore(&kept);
    }
    for (size_t at = 0; st == ZERO_OK && comm->rank > 0 && at < bytes; at += ZERO_DELIVERED)
        st = zero_wait_send(comm, ZERO_OPERATION_MESSAGE, 0, (const char *)data + at,
                            zero_min_size(bytes - at, ZERO_DELIVERED));
    return zero_agree_after_files(comm, st);
}
