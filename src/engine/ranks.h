/* ranks.h - what the ranks of a run did beside each other: bytes from rank to rank, and
 * seconds of each. Both are gathered once, after the last step. */
#pragma once

#include "engine/engine.h"

/* ---- bytes ---- */

/* [n][n] bytes of data, by sender and receiver (lists/peers.h), of all programs that were
 * walked. */
typedef struct {
    int n;            /* ranks; 0: more than ZERO_MOST_PEERS, nothing is known */
    int64_t *planned; /* owned, as `sent` is */
    int64_t *sent;
} zero_rank_bytes;

/* Collective over the engine's ranks. ZERO_ERR_NOMEM on all of them. Release with
 * _destroy. */
zero_status zero_rank_bytes_gather(const zero_engine *e, zero_rank_bytes *bytes);
void zero_rank_bytes_destroy(zero_rank_bytes *bytes); /* accepts a zeroed one */

/* ---- seconds ---- */

/* The parts of a step's seconds add up to the step, rank by rank. Collectives in flight
 * overlap each other, and those of evaluations count as well. */
typedef enum {
    ZERO_RANK_STEP,    /* all instructions of all training steps */
    ZERO_RANK_COMPUTE, /* arithmetic, without polls */
    ZERO_RANK_EXCHANGE, /* polls during arithmetic, and instructions that begin collectives */
    ZERO_RANK_EXPOSED,   /* waits for collectives on data; a device's, for copies, too */
    ZERO_RANK_WAITED,    /* waits until all ranks agree */
    ZERO_RANK_TRANSFERS, /* a scratch file: begun and waited for */
    ZERO_RANK_IN_FLIGHT, /* collectives on data, from begin to end, added up */
    ZERO_RANK_AWAITED,   /* of these, spent waiting and doing nothing else */
    ZERO_RANK_TIMES
} zero_rank_time;

const char *zero_rank_time_name(zero_rank_time time); /* "in_flight" */

typedef struct {
    int n;           /* ranks */
    double *of_rank; /* [n][ZERO_RANK_TIMES]; owned */
    double least[ZERO_RANK_TIMES], mean[ZERO_RANK_TIMES], most[ZERO_RANK_TIMES];
} zero_rank_seconds;

/* Collective over the engine's ranks. ZERO_ERR_NOMEM on all of them. Release with
 * _destroy. */
zero_status zero_rank_seconds_gather(const zero_engine *e, zero_rank_seconds *seconds);
void zero_rank_seconds_destroy(zero_rank_seconds *seconds); /* accepts a zeroed one */
