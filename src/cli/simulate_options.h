/* simulate_options.h - the options of `zero simulate`: its own, a job's, and those of a run
 * that decide a plan. */
#pragma once

#include "cli/job_options.h"
#include "trace/simulation_trace.h"

typedef struct {
    zero_simulation_request request;

    zero_job_options job;
    const char *slow, *switches, *poll, *trace, *trace_ranks; /* trace: NULL: none */
    zero_trace_ranks traced;          /* with trace: what trace_ranks says */
    double adapter, memory_bandwidth; /* 0: not given */
    int64_t steps, memory_limit, most_messages;
    bool json, machines; /* machines: --machine help */
    zero_options given;  /* owned */
} zero_simulate_options;

#define ZERO_SIMULATE_TABLES 3
extern const zero_option_table zero_simulate_tables[ZERO_SIMULATE_TABLES];

/* Fills in what a preset decides, for --help. */
ZERO_NODISCARD zero_status zero_simulate_options_complete(void *options);

/* Reads what follows the subcommand. ZERO_ERR_INVALID or ZERO_ERR_UNSUPPORTED, with
 * *options untouched, on the first mistake. `argv` outlives *options. */
ZERO_NODISCARD zero_status zero_simulate_options_parse(zero_simulate_options *options,
                                                       int argc, char **argv);
void zero_simulate_options_destroy(zero_simulate_options *options);
