/* zero/comm.h: groups as programs hold them. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "comm/comm.h"
#include "comm/mpi_error.h"
#include "comm/watch.h"

/* ---- may it be used ---- */

bool zero_comm_is_up(void)
{
    return zero_mpi_is_up();
}

zero_status zero_comm_check(const zero_comm *comm)
{
    if (!comm)
        return zero_fail(ZERO_ERR_INVALID,
                         "the group is NULL: open one with zero_comm_open()");
    ZERO_TRY(zero_mpi_check_up());
    if (!comm->is_closed) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "the group is closed: close it after what works on it");
}

/* ---- open and close ---- */

/* Ranks agree on the result before the watchdog sends its first message. */
static zero_status check_open(double watchdog, zero_comm **comm)
{
    if (!comm)
        return zero_fail(ZERO_ERR_INVALID,
                         "zero_comm_open() without a place for the group");
    if (watchdog >= 0.0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "a watchdog of %g s: expected 0 or more", watchdog);
}

static zero_status start_watched(zero_comm *comm, double watchdog, zero_comm **out,
                                 zero_comm **kept)
{
    zero_status st = check_open(watchdog, out);
    if (st == ZERO_OK) st = zero_new(kept, 1, "a group of ranks");
    ZERO_TRY(zero_agree(comm, st));
    **kept = *comm; /* the watchdog keeps its address */
    return zero_watch_start(*kept, watchdog);
}

zero_status zero_comm_open(MPI_Comm mpi, double watchdog, zero_comm **comm)
{
    zero_comm own, *kept = NULL;
    ZERO_TRY(zero_mpi_check_up());
    ZERO_TRY(zero_comm_from(mpi, &own));
    zero_status st = start_watched(&own, watchdog, comm, &kept);
    if (st == ZERO_OK) {
        *comm = kept;
    } else {
        free(kept);
        zero_comm_destroy(&own);
    }
    return st;
}

static void end_if_unused(zero_comm *comm)
{
    if (!comm->is_closed || comm->users > 0) return;
    zero_comm_destroy(comm);
    free(comm);
}

void zero_comm_close(zero_comm **comm)
{
    if (!comm || !*comm) return;
    (*comm)->is_closed = true;
    end_if_unused(*comm);
    *comm = NULL;
}

void zero_comm_keep(zero_comm *comm)
{
    comm->users++;
}

void zero_comm_release(zero_comm *comm)
{
    comm->users--;
    end_if_unused(comm);
}

int zero_comm_rank(const zero_comm *comm)
{
    return comm ? comm->rank : -1;
}

int zero_comm_size(const zero_comm *comm)
{
    return comm ? comm->size : 0;
}
