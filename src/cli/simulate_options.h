/* simulate_options.h - the options of `zero simulate`: its own, a job's, and those of a run
 * that decide a plan. */
#pragma once

#include "cli/job_options.h"
#include "trace/simulation_trace.h"

typedef struct {
    zero_simulation_request request;

    zero_job_options job;
    const char *slow, *switches, *poll, *trace, *trace_ranks, *chakra; /* NULL: none */
    zero_trace_ranks traced; /* with trace: what trace_ranks says */
    bool json, machines;     /* machines: --machine help */
} zero_simulate_options;
