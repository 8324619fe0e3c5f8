/* bench_shares.h - the part of an engine's steps that each class of instructions took. */
#pragma once

#include <jansson.h>

#include "bench_engine.h"

typedef struct {
    double of[ZERO_OP_KINDS][BENCH_COLUMNS]; /* shares of the step's time on its rank */
    double exchange; /* in polls while instructions computed: part of their shares */
    double exposed;  /* waiting for collectives: part of the waits' shares */
    double rest;     /* between instructions */
    double seconds;  /* of a step */
} bench_share;

typedef struct {
    bench_share first;   /* rank 0's */
    bench_share slowest; /* the rank's that waits least: the others wait for it */
    int slowest_rank;
} bench_shares;

/* Collective, the same on all ranks. ZERO_ERR_NOMEM. */
zero_status bench_shares_gather(const bench_engine *e, bench_shares *shares);

void bench_shares_print(const bench_shares *shares, const zero_config *config);
/* Shares of the step's seconds, as JSON. NULL without memory. */
json_t *bench_share_object(const bench_share *share);
