/* bench_shares.h - what part of an engine's steps each class of instructions took. */
#pragma once

#include <jansson.h>

#include "bench_engine.h"

typedef struct {
    double of[ZERO_OP_KINDS][BENCH_COLUMNS]; /* of the step's time on its rank, as these */
    double exchange; /* moved for collectives while instructions computed: part of theirs */
    double exposed;  /* waited for collectives: part of the waits' */
    double rest;     /* between instructions */
    double seconds;  /* of a step */
} bench_share;

typedef struct {
    bench_share first;   /* rank 0's */
    bench_share slowest; /* of the rank that waits least: the others wait for it */
    int slowest_rank;
} bench_shares;

/* Collective, the same on all ranks. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status bench_shares_gather(const bench_engine *e, bench_shares *shares);

void bench_shares_print(const bench_shares *shares, const zero_config *config);
/* Seconds do not stand here: shares of `step_seconds`. NULL without memory. */
json_t *bench_share_object(const bench_share *share);
