/* zero/comm.h: groups as programs hold them. */

#include "comm/comm.h"
#include "comm/mpi_error.h"
#include "comm/named.h"
#include "comm/watch.h"
#include "comm/wire.h"
#include "comm/works.h"

/* ---- may it be used ---- */

zero_status zero_comm_check(const zero_comm *comm)
{
    ZERO_INVALID_IF(!comm, "the group is NULL: open one with zero_comm_open()");
    ZERO_TRY(zero_mpi_check_up());
    ZERO_INVALID_IF(comm->is_closed,
                    "the group is closed: close it after what works on it");
    return ZERO_OK;
}

/* ---- open and close ---- */

zero_status zero_comm_open(MPI_Comm mpi, double watchdog, zero_comm **comm)
{
    zero_comm own, *kept = NULL;
    zero_status st = ZERO_OK;
    ZERO_TRY(zero_mpi_check_up());
    ZERO_TRY(zero_comm_from(mpi, &own));
    if (!comm)
        st = zero_fail(ZERO_ERR_INVALID, "zero_comm_open() without a place for the group");
    else if (!(watchdog >= 0.0))
        st =
            zero_fail(ZERO_ERR_INVALID, "a watchdog of %g s: expected 0 or more", watchdog);
    else
        st = zero_new(&kept, 1, "a group of ranks");
    /* Ranks agree before the watchdog sends its first message. */
    st = zero_agree(&own, st);
    if (st == ZERO_OK) st = zero_wire_try(&own);
    if (st == ZERO_OK) {
        *kept = own; /* the watchdog keeps its address */
        kept->starting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        st = zero_watch_start(kept, watchdog);
    }
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
    if (comm->whole) {
        zero_named_close(comm);
        return;
    }
    if (zero_works_end(comm) != ZERO_OK) return;
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
