/* bench_options.h - the command line of bench_collectives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "bench_lists.h"
#include "cli/options.h"
#include "lists/algorithm.h"

#define BENCH_TYPES 3

typedef enum { BENCH_TABLE, BENCH_OVERLAP, BENCH_BACKWARD } bench_mode;

typedef struct {
    bench_mode mode;
    int n_sizes;
    size_t sizes[BENCH_LIST]; /* bytes of the whole array */
    int n_types;
    zero_type types[BENCH_TYPES];
    bool algorithms[ZERO_ALGORITHMS]; /* none of them: all that can run here */
    bool kinds[ZERO_COLLECTIVE_KINDS];
    int rounds;
    double wire;      /* bytes per second on a node's link in one direction; 0: not given */
    double compute;   /* seconds, of the backward pass */
    int fake_nodes;   /* 0: the real nodes */
    size_t chunk;     /* bytes per message, at most; 0: the algorithm's choice */
    const char *json; /* borrowed; NULL: no file */
} bench_options;

extern const zero_command bench_collectives_command;

/* Takes what was read. ZERO_ERR_INVALID for a wrong value. */
zero_status bench_options_take(bench_options *options, const void *read);
