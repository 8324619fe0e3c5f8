#include "base/fail.h"
#include "zero/comm.h"

#include <stdlib.h>

#include "comm/comm.h"
#include "comm/watch.h"

static zero_status start(zero_comm *comm, double watchdog, zero_comm **kept)
{
    *kept = malloc(sizeof **kept);
    zero_status st =
        *kept ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for a group of ranks");
    ZERO_TRY(zero_agree(comm, st));
    **kept = *comm; /* the watchdog holds on to the place */
    return zero_watch_start(*kept, watchdog);
}

zero_status zero_comm_open(MPI_Comm mpi, double watchdog, zero_comm **comm)
{
    zero_comm own, *kept = NULL;
    ZERO_TRY(zero_comm_from(mpi, &own));
    zero_status st = start(&own, watchdog, &kept);
    if (st == ZERO_OK) {
        *comm = kept;
    } else {
        free(kept);
        zero_comm_destroy(&own);
    }
    return st;
}

void zero_comm_close(zero_comm *comm)
{
    if (!comm) return;
    zero_comm_destroy(comm);
    free(comm);
}

int zero_comm_rank(const zero_comm *comm)
{
    return comm->rank;
}

int zero_comm_size(const zero_comm *comm)
{
    return comm->size;
}
