/* plan_options.h - the options of `zero plan`: its own, and those of a run that decide a plan. */
#pragma once

#include "cli/options.h"
#include "report/plan_report.h"

#define ZERO_PLAN_RANKS 1048576 /* at most */

typedef struct {
    bool models, machines, json, chart;
    const char *paper; /* the table's name; NULL: none */
    zero_plan_request request;

    int64_t ranks, rank;
    int64_t pipeline; /* stages; 0: no pipelines */
    int64_t stage;    /* ZERO_OPTION_WORD: all; -1: not on the command line */
    const char *network, *node_network, *disk, *fit;
    const char *machine; /* a name or a path; "help": all machines are listed */
    double flops;
    zero_options given; /* owned */
} zero_plan_options;

#define ZERO_PLAN_TABLES 2
extern const zero_option_table zero_plan_tables[ZERO_PLAN_TABLES];

/* Fills in what a preset decides, for --help. */
ZERO_NODISCARD zero_status zero_plan_options_complete(void *options);

/* Reads what follows the subcommand. ZERO_ERR_INVALID or ZERO_ERR_UNSUPPORTED, with *options
 * untouched, on the first mistake. `argv` outlives *options. */
ZERO_NODISCARD zero_status zero_plan_options_parse(zero_plan_options *options, int argc,
                                                   char **argv);
void zero_plan_options_destroy(zero_plan_options *options);
