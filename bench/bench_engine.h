/* bench_engine.h - an engine as a work to be timed, and where the time of its steps goes. */
#pragma once

#include "bench_sample.h"
#include "engine/engine.h"
#include "train/config.h"

#define BENCH_COLUMNS 4 /* of a profile of GPT-2: all units, embedding, block, head */

/* Seconds of this rank, summed over the timed steps. */
typedef struct {
    int64_t steps;
    double all;
    double of[ZERO_OP_KINDS][BENCH_COLUMNS]; /* as in train/profile.h */
    double exchange; /* of all: in polls, while instructions computed */
    double exposed;  /* of all: waiting for collectives, and doing nothing else */
} bench_profile;

typedef struct bench_engine {
    zero_engine_spec spec;
    zero_comm *comm; /* borrowed, like the next two */
    const zero_config *config;
    struct bench_engine *
        *resident; /* NULL: it stays; else who is in memory: one at a time */
    int steps;     /* of one run */
    bool is_open;
    int64_t next_step;
    zero_engine engine;
    bench_profile profile;
} bench_engine;

/* prepare: opens the engine and warms it up, if it is not there. run: `steps` steps, and what
 * the last one leaves in flight. Collective. */
bench_work bench_engine_work(bench_engine *e);
void bench_engine_close(bench_engine *e); /* accepts a closed one; collective */
