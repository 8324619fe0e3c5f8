/* simulation_report.h - everything that `zero simulate` shows, before it is shown, and its
 * forms. A higher floor may watch the simulation while it runs:
 * trace/simulation_trace.h. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"
#include "simulation/simulate.h"

typedef struct zero_simulation_report zero_simulation_report;

/* Sees the simulation of the first stage. */
typedef struct {
    /* The report has its plan. Sets the callbacks of the input. */
    zero_status (*begin)(void *arg, const zero_simulation_report *report,
                         zero_simulate_input *input);
    /* After a _begin() that succeeded: the status is the simulation's. Returns the first
     * failure. */
    zero_status (*end)(void *arg, zero_status st);
    void *arg;
} zero_simulation_watcher;

typedef struct {
    zero_plan_request plan; /* `simulated` is set by _make() */
    /* Without the numbers of --machine, --network and --flops, which the plan has. */
    zero_simulate_input input;
    const zero_simulation_watcher *watcher; /* NULL: none */
} zero_simulation_request;

struct zero_simulation_report {
    zero_simulation_request request;
    zero_plan_report plan;
    zero_simulate_input input; /* with the plan's machine */
    zero_simulated *results;   /* [plan.n], owned */
};

/* Plans and simulates all stages that are asked for. The report must stay where it is.
 * Fails, leaving nothing, as the plan, the simulation and the watcher do. */
ZERO_NODISCARD zero_status zero_simulation_report_make(
    zero_simulation_report *report, const zero_simulation_request *request);
void zero_simulation_report_destroy(zero_simulation_report *report);

/* A stage in full, or all stages a row each, in at most 100 columns; or `json`: one object,
 * whose keys are in README.md. The same simulation gives the same text. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_simulation_show(const zero_simulation_report *report,
                                                bool json, FILE *out);
