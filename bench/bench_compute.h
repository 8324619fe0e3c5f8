/* bench_compute.h - a compute loop of known length that polls as training does. */
#pragma once

#include "bench_sample.h"

#define BENCH_NO_POLL (-1.0)

typedef struct {
    zero_comm *comm;     /* the group that is polled; borrowed */
    double unit_seconds; /* of the slowest rank, while all compute */
} bench_computer;

/* Collective: measures the loop's speed. */
zero_status bench_computer_init(bench_computer *computer, zero_comm *comm);

/* Computes for about `seconds`, a fixed amount of work, and polls the group whenever `gap`
 * seconds have passed. */
zero_status bench_compute(const bench_computer *computer, double seconds, double gap);
