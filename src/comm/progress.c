#include "comm/progress.h"

#include <mpi.h>

#include "base/fail.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"

static zero_status poll_all(zero_comm *comm)
{
    return zero_flight_poll(comm, NULL);
}

zero_status zero_progress_start(zero_comm *comm, double period_seconds)
{
    ZERO_TRY(zero_family_check_whole(comm, "a progress thread"));
    if (!(period_seconds > 0.0 && period_seconds <= 1.0) || comm->thread)
        return zero_fail(ZERO_ERR_INVALID,
                         "a progress thread with a period of %g s: expected more than 0, "
                         "at most 1, and one thread per group",
                         period_seconds);
    int level = MPI_THREAD_SINGLE;
    ZERO_TRY(zero_mpi_check(MPI_Query_thread(&level), "MPI_Query_thread"));
    if (level != MPI_THREAD_MULTIPLE)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "a progress thread needs MPI at thread level MULTIPLE (%d); it "
                         "runs at level %d",
                         MPI_THREAD_MULTIPLE, level);
    return zero_thread_start(comm, period_seconds, poll_all);
}

void zero_progress_stop(zero_comm *comm)
{
    zero_thread_stop(comm);
}
