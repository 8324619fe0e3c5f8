/* plan_options.h - the options of `zero plan`: those of `zero train`, and some of its own. */
#pragma once

#include <stdio.h>

#include "cli/options.h"
#include "report/plan_report.h"

#define ZERO_PLAN_RANKS 65536 /* at most */

typedef struct {
    zero_options train; /* what the other options say; its help is not used */
    char **others;      /* owned: the arguments that train's strings are borrowed from */
    bool help, models, json, chart;
    const char *paper; /* the table's name; NULL: none */
    zero_plan_request request;
} zero_plan_options;

/* Reads what follows the subcommand. ZERO_ERR_INVALID or ZERO_ERR_UNSUPPORTED, with *options
 * untouched, on the first mistake, as zero_options_parse(). `argv` outlives *options. */
ZERO_NODISCARD zero_status zero_plan_options_parse(zero_plan_options *options, int argc,
                                                   char **argv);
void zero_plan_options_destroy(zero_plan_options *options);

/* The text of --help. */
void zero_plan_help(FILE *out);
