/* bench_step_options.h - the command lines of bench_step and bench_kernels: their options and
 * zero train's. */
#pragma once

#include "bench_lists.h"
#include "cli/run_options.h"
#include "sharding/stages.h"

#define BENCH_STAGES ZERO_STAGE_COUNT
#define BENCH_DTYPES 3

typedef struct {
    zero_config config; /* of all engines except stage and dtype; completed for the ranks */
    int n_stages, n_dtypes;
    int stages[BENCH_LIST];
    zero_type dtypes[BENCH_DTYPES];
    int64_t rounds, steps; /* steps of an engine in each round */
    const char *json;      /* NULL: no file */

    const char *stage_list, *dtype_list; /* as given, or NULL */
    const zero_options *given;
} bench_step_options;

#define BENCH_STEP_TABLES 2
extern const zero_option_table bench_step_tables[BENCH_STEP_TABLES];

/* Fills in what a preset decides, for --help. */
zero_status bench_step_options_complete_help(void *options);

/* Takes the lists, when the options are read. ZERO_ERR_INVALID for a wrong value. */
zero_status bench_step_options_take(bench_step_options *options, const zero_options *given);

/* Completes the options: by default GPT-2, 256 positions, 4 sequences over all ranks. */
zero_status bench_step_options_complete(bench_step_options *options, int n_ranks);
