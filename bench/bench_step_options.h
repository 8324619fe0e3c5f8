/* bench_step_options.h - the command line of bench_step: options of its own, and zero train's. */
#pragma once

#include "cli/options.h"

#define BENCH_STAGES 4
#define BENCH_DTYPES 3

typedef struct {
    zero_options train; /* owned; strings are borrowed from argv */
    zero_config
        config; /* of all engines but for stage and dtype; completed for the ranks */
    int n_stages, n_dtypes;
    int64_t stages[BENCH_STAGES];
    const char *dtypes[BENCH_DTYPES];
    int rounds, steps; /* steps of an engine in each round */
    const char *json;  /* NULL: no file */
    bool help;
} bench_step_options;

/* ZERO_ERR_INVALID for anything that is not an option or not its value. `argv` is reordered
 * and outlives *options. Release with _destroy. */
ZERO_NODISCARD zero_status bench_step_options_parse(bench_step_options *options, int argc,
                                                    char **argv);
void bench_step_options_destroy(bench_step_options *options);

/* What the command line leaves open: GPT-2, 256 positions, 4 sequences over all ranks. */
ZERO_NODISCARD zero_status bench_step_options_complete(bench_step_options *options,
                                                       int n_ranks);

void bench_step_options_help(const char *usage);
