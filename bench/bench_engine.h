/* bench_engine.h - an engine as a work to be timed, and the profile of its timed steps. */
#pragma once

#include "bench_sample.h"
#include "engine/engine.h"
#include "train/config.h"

#define BENCH_COLUMNS 4 /* of a profile of GPT-2: all units, embedding, block, head */

/* Seconds of this rank, summed over the timed steps. */
typedef struct {
    int64_t steps;
    double all;
    double of[ZERO_OP_KINDS][BENCH_COLUMNS]; /* as in state/profile.h */
    double exchange; /* part of all: in polls, while instructions computed */
    double exposed;  /* part of all: waiting for collectives and doing nothing else */
} bench_profile;

typedef struct bench_engine {
    zero_engine_spec spec;
    zero_comm *comm; /* borrowed, like the next two */
    const zero_config *config;
    /* The one engine in memory, shared by all; NULL: this one stays there. */
    struct bench_engine **resident;
    int steps; /* of one run */
    bool is_open;
    int64_t next_step;
    zero_engine engine;
    bench_profile profile;
} bench_engine;

/* prepare opens the engine and warms it up unless it is open. run takes `steps` steps and waits
 * for the gathers that the last one leaves in flight. Collective. */
bench_work bench_engine_work(bench_engine *e);
void bench_engine_close(bench_engine *e); /* accepts a closed one; collective */
