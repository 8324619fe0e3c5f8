/* plan_options.h - the options of `zero plan`: its own, a job's, and those of a run
 * that decide a plan. */
#pragma once

#include "cli/job_options.h"
#include "report/plan_facts.h"

typedef struct {
    bool models, machines, json, chart, best;
    const char *paper; /* the table's name; NULL: none */
    zero_plan_request request;

    zero_job_options job;
    const char *fit;
    const char *per_node; /* --ranks-per-node; NULL: not asked for */
    int n_per_node, ranks_per_node[ZERO_NODE_ROWS];
} zero_plan_options;
