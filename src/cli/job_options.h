/* job_options.h - the options of a job that is planned, simulated or swept, not run: how
 * many ranks it has, and the machine they are on. Its other options are those of a run
 * (run_options.h). */
#pragma once

#include "cli/options.h"
#include "report/plan_report.h"

#define ZERO_PLAN_RANKS 1048576 /* at most */

typedef struct {
    int64_t ranks;
    int64_t stage; /* ZERO_OPTION_WORD: all; -1: not on the command line */
    const char *network, *node_network, *disk;
    const char *machine; /* a name or a path; "help": all machines are listed */
    double flops;
} zero_job_options;

/* They fill a zero_job_options. A command with other forms of one of them, such as a list
 * of ranks, has a row of that name in an earlier table. */
extern const zero_option zero_job_rows[];

/* Fills in what the options say of the request: ranks, stages and machine. Its config is
 * that of the command line. ZERO_ERR_INVALID, naming the option. */
ZERO_NODISCARD zero_status zero_job_options_read(const zero_job_options *job,
                                                 zero_plan_request *request);
