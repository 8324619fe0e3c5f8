#include "comm/clock_offset.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/wait.h"

/* ---- ping-pong ---- */

/* The lowest rank of a rank's node. */
static int speaker(const zero_layout *layout, int rank)
{
    int first = 0;
    while (layout->node_of[first] != layout->node_of[rank]) first++;
    return first;
}

/* ---- all ranks ---- */

zero_status zero_clock_offset_read(zero_comm *comm, zero_clock_reading *mine, double *worst)
{
    zero_clock_reading reading = {.at = zero_clock_seconds()};
    ZERO_FREED zero_clock_reading *all = NULL;
    const int numbers = sizeof reading / sizeof(double);
    ZERO_TRY(zero_agree(comm, zero_new(&all, comm->size, "readings of clocks")));
    const zero_layout *layout = &comm->layout;
    for (int rank = 1; comm->rank == 0 && rank < comm->size; rank++) {
        if (speaker(layout, rank) != rank) continue;
        for (int k = 0; k < ZERO_CLOCK_PINGS; k++) {
            double theirs;
            ZERO_TRY(zero_wait_receive(comm, ZERO_OPERATION_NUMBERS, rank, &theirs,
                                       sizeof theirs));
            double now = zero_clock_seconds();
            ZERO_TRY(zero_wait_send(comm, ZERO_OPERATION_NUMBERS, rank, &now, sizeof now));
        }
    }
    const bool asks = comm->rank > 0 && speaker(layout, comm->rank) == comm->rank;
    if (asks) reading = (zero_clock_reading){.uncertainty = INFINITY};
    for (int k = 0; asks && k < ZERO_CLOCK_PINGS; k++) {
        double begun = zero_clock_seconds(), theirs;
        ZERO_TRY(zero_wait_send(comm, ZERO_OPERATION_NUMBERS, 0, &begun, sizeof begun));
        ZERO_TRY(
            zero_wait_receive(comm, ZERO_OPERATION_NUMBERS, 0, &theirs, sizeof theirs));
        double ended = zero_clock_seconds(), half = 0.5 * (ended - begun);
        if (half >= reading.uncertainty) continue;
        reading = (zero_clock_reading){
            .at = ended, .offset = theirs - (begun + half), .uncertainty = half};
    }
    ZERO_TRY(zero_comm_all_gather_doubles(comm, numbers, &reading.at, &all->at));
    /* Neighbours have the clock of the rank that speaks for their node. */
    *mine = all[speaker(layout, comm->rank)];
    *worst = 0.0;
    for (int rank = 0; rank < comm->size; rank++)
        *worst = fmax(*worst, all[rank].uncertainty);
    return ZERO_OK;
}

double zero_clock_offset_align(const zero_clock_reading *first,
                               const zero_clock_reading *last, double t)
{
    double apart = last->at - first->at;
    double part = apart > 0.0 ? (t - first->at) / apart : 0.0;
    return t + first->offset + part * (last->offset - first->offset);
}
