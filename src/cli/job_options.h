/* job_options.h - the options of a job that is planned, simulated or swept, not run: how
 * many ranks it has, and the machine they are on. Its other options are those of a run
 * (run_options.h). */
#pragma once

#include "cli/options.h"
#include "report/plan_report.h"
#include "trace/trace_ranks.h"

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
zero_status zero_job_options_read(const zero_job_options *job, zero_plan_request *request);

/* ---- values that are lists with commas: "0-7,64", "5:0.8,7:0.5" ---- */

#define ZERO_LIST_PART 64 /* bytes of a part; longer ones are wrong */

/* Takes the part of *list before the next comma; *list becomes NULL after the last part.
 * False if it is longer than any that is right. */
bool zero_list_take(const char **list, char part[ZERO_LIST_PART]);
/* Cuts "a:b" in two: the part after the character, or NULL without it. */
char *zero_list_cut(char *text, char at);

bool zero_list_rank(const char *text, int *rank);
/* The ranks that a list may name: "--ranks" 8. */
typedef struct {
    const char *of;
    int64_t ranks;
} zero_list_job;

/* ZERO_ERR_INVALID in the name of --`option` unless the job has the rank. */
zero_status zero_list_check_rank(const char *option, int rank, const zero_list_job *job);

/* The value of --trace-ranks. ZERO_ERR_INVALID. */
zero_status zero_list_trace_ranks(const char *list, const zero_list_job *job,
                                  zero_trace_ranks *to);
