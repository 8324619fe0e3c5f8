/* late.h - the last rank of a test is late until the watchdog of another one has spoken. Seconds would
 * not do: a rank of a busy machine, which gets its turns late, counts only a part of them as waited. */
#pragma once

#include <mpi.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/collective.h"
#include "support/mpi_cmocka.h"

#define LATE_TAG  71
#define LATE_MOST 60.0 /* seconds more than planned, after which the test fails */

/* The rank whose wait failed; not the last one. */
static inline void late_tell(void)
{
    char nothing = 0;
    MPI_Send(&nothing, 1, MPI_CHAR, test_size - 1, LATE_TAG, MPI_COMM_WORLD);
}

static inline bool late_hears(void)
{
    int found = 0;
    char nothing;
    MPI_Iprobe(MPI_ANY_SOURCE, LATE_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (found)
        MPI_Recv(&nothing, 1, MPI_CHAR, MPI_ANY_SOURCE, LATE_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return found != 0;
}

/* On the last rank: true until `end` has passed and a rank was told; it sleeps a little. */
static inline bool late_goes_on(double end, bool *heard)
{
    double now = zero_clock_seconds();
    *heard = late_hears() || *heard;
    if (now >= end && (*heard || now >= end + LATE_MOST)) return false;
    usleep(2000);
    return true;
}

/* After a verdict a program ends; here the collective completes. On a busy machine that may take longer
 * than the watchdog allows once more. */
static inline zero_status late_wait(zero_collective *op)
{
    zero_status st = ZERO_ERR_STALLED;
    for (int i = 0; i < 20 && st == ZERO_ERR_STALLED; i++) st = zero_collective_wait(op);
    return st;
}

/* On all ranks, once everything has come: nothing is left for the next test. */
static inline void late_end(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    while (test_rank == test_size - 1 && late_hears()) continue;
    MPI_Barrier(MPI_COMM_WORLD);
}
