/* clock_offset.h - what a rank's clock shows while rank 0's shows t.
 *
 * Machines' monotonic clocks begin when they were started, and drift by parts per million.
 * So the first rank of each node exchanges 8 messages with rank 0, and keeps the fastest:
 *
 *     first rank    sends at a ............... b receives         offset = t - (a + b) / 2
 *     rank 0                   answers at t                       wrong by (b - a) / 2 at most
 *
 * It tells its neighbours, which have the same clock. A second reading, later, tells the
 * drift: the offset in between is on a line. Ranks of rank 0's node have the offset 0,
 * exactly. */
#pragma once

#include "comm/group.h"

typedef struct {
    double at;          /* this rank's clock */
    double offset;      /* to be added for rank 0's clock */
    double uncertainty; /* seconds: half the fastest round trip; 0 on rank 0's node */
} zero_clock_reading;

#define ZERO_CLOCK_PINGS 8

/* Collective over the group, a whole; blocks. worst->uncertainty is that of the worst node.
 * ZERO_ERR_NOMEM on all ranks. */
zero_status zero_clock_offset_read(zero_comm *comm, zero_clock_reading *mine,
                                   double *worst);

/* Rank 0's clock when this rank's shows t, from two readings, of which the second may be
 * the same as the first. Local. */
double zero_clock_offset_align(const zero_clock_reading *first,
                               const zero_clock_reading *last, double t);
