#include "comm/clock_offset.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/grow.h"
#include "comm/comm.h"
#include "comm/mpi_error.h"
#include "comm/operation.h"
#include "comm/wait.h"
#include "lists/small.h"

#define TAG \
    0 /* of control's messages from rank to rank, which no two functions send at once */

/* ---- messages ---- */

static zero_status await(zero_comm *comm, MPI_Request *request)
{
    zero_operation what = zero_operation_control(
        ZERO_OPERATION_NUMBERS, comm->control_sequence - 1, sizeof(double), -1);
    return zero_wait_message(comm, &what, request);
}

static zero_status send(zero_comm *comm, int rank, double *number)
{
    MPI_Request request;
    ZERO_TRY(
        zero_mpi_check(MPI_Isend(number, 1, MPI_DOUBLE, rank, TAG, comm->control, &request),
                       "MPI_Isend of a clock"));
    return await(comm, &request);
}

static zero_status receive(zero_comm *comm, int rank, double *number)
{
    MPI_Request request;
    ZERO_TRY(
        zero_mpi_check(MPI_Irecv(number, 1, MPI_DOUBLE, rank, TAG, comm->control, &request),
                       "MPI_Irecv of a clock"));
    return await(comm, &request);
}

/* ---- ping-pong ---- */

/* The lowest rank of a rank's node. */
static int speaker(const zero_layout *layout, int rank)
{
    int first = 0;
    while (layout->node_of[first] != layout->node_of[rank]) first++;
    return first;
}

static void count(zero_comm *comm, int64_t messages)
{
    zero_traffic *t = &comm->traffic[ZERO_CONTROL];
    int64_t bytes = messages * (int64_t)sizeof(double);
    zero_traffic_count(t, ZERO_ACROSS, true, messages, bytes);
    zero_traffic_count(t, ZERO_ACROSS, false, messages, bytes);
}

static zero_status exchange(zero_comm *comm, zero_clock_reading *mine)
{
    const zero_layout *layout = &comm->layout;
    *mine = (zero_clock_reading){.at = zero_clock_seconds()};
    for (int rank = 1; comm->rank == 0 && rank < comm->size; rank++) {
        if (speaker(layout, rank) != rank) continue;
        for (int k = 0; k < ZERO_CLOCK_PINGS; k++) {
            double theirs;
            ZERO_TRY(receive(comm, rank, &theirs));
            double now = zero_clock_seconds();
            ZERO_TRY(send(comm, rank, &now));
        }
        count(comm, ZERO_CLOCK_PINGS);
    }
    if (comm->rank == 0 || speaker(layout, comm->rank) != comm->rank) return ZERO_OK;
    count(comm, ZERO_CLOCK_PINGS);
    *mine = (zero_clock_reading){.uncertainty = INFINITY};
    for (int k = 0; k < ZERO_CLOCK_PINGS; k++) {
        double begun = zero_clock_seconds(), sent = begun, theirs;
        ZERO_TRY(send(comm, 0, &sent));
        ZERO_TRY(receive(comm, 0, &theirs));
        double ended = zero_clock_seconds(), half = 0.5 * (ended - begun);
        if (half >= mine->uncertainty) continue;
        *mine = (zero_clock_reading){
            .at = ended, .offset = theirs - (begun + half), .uncertainty = half};
    }
    return ZERO_OK;
}

/* ---- all ranks ---- */

/* Neighbours have the clock of the rank that speaks for their node. */
static void take(const zero_comm *comm, const double *all, zero_clock_reading *mine,
                 double *worst)
{
    const double *theirs = &all[3 * (size_t)speaker(&comm->layout, comm->rank)];
    *mine = (zero_clock_reading){theirs[0], theirs[1], theirs[2]};
    *worst = 0.0;
    for (int rank = 0; rank < comm->size; rank++)
        *worst = fmax(*worst, all[3 * (size_t)rank + 2]);
}

zero_status zero_clock_offset_read(zero_comm *comm, zero_clock_reading *mine, double *worst)
{
    zero_clock_reading reading;
    double *all;
    zero_status st =
        zero_agree(comm, zero_new(&all, 3 * (size_t)comm->size, "readings of clocks"));
    if (st == ZERO_OK) st = exchange(comm, &reading);
    double sent[3] = {0.0};
    if (st == ZERO_OK) {
        sent[0] = reading.at, sent[1] = reading.offset, sent[2] = reading.uncertainty;
        st = zero_comm_all_gather_doubles(comm, 3, sent, all);
    }
    if (st == ZERO_OK) take(comm, all, mine, worst);
    free(all);
    return st;
}

double zero_clock_offset_align(const zero_clock_reading *first,
                               const zero_clock_reading *last, double t)
{
    double apart = last->at - first->at;
    double part = apart > 0.0 ? (t - first->at) / apart : 0.0;
    return t + first->offset + part * (last->offset - first->offset);
}
