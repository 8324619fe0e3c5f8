/* simulation_report.h - everything that `zero simulate` shows, before it is shown, and its
 * forms. */
#pragma once

#include "report/plan_report.h"
#include "simulation/simulate.h"

typedef struct {
    zero_plan_request plan; /* `simulated` is set by _make() */
    /* Without the numbers of --machine, --network and --flops, which the plan has. */
    zero_simulate_input input;
} zero_simulation_request;

typedef struct {
    zero_simulation_request request;
    zero_plan_report plan;
    zero_simulate_input input; /* with the plan's machine */
    zero_simulated *results;   /* [plan.n], owned */
} zero_simulation_report;

/* Plans all stages that are asked for, and simulates them; callbacks of the input see the
 * first. The report must stay where it is. A _plan() that fails leaves nothing. */
zero_status zero_simulation_report_plan(zero_simulation_report *report,
                                        const zero_simulation_request *request);
zero_status zero_simulation_report_run(zero_simulation_report *report);
/* Both. Fails, leaving nothing, as they do. */
zero_status zero_simulation_report_make(zero_simulation_report *report,
                                        const zero_simulation_request *request);
void zero_simulation_report_destroy(zero_simulation_report *report);

/* A stage in full, or all stages a row each, in at most 100 columns; or `json`: one object,
 * whose keys are in README.md. The same simulation gives the same text. ZERO_ERR_NOMEM. */
zero_status zero_simulation_show(const zero_simulation_report *report, bool json,
                                 FILE *out);
