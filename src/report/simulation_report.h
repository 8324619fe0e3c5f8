/* simulation_report.h - everything that `zero simulate` shows, before it is shown.
 *
 * Each picture of it is a file of its own: simulation_show.h, simulation_json.h; simulation_trace.h
 * is written while it is made. */
#pragma once

#include "report/plan_report.h"
#include "simulation/simulate.h"

#define ZERO_TRACE_RANGES 64

/* Ranks of a trace: [n] ranges with both ends. */
typedef struct {
    int n;
    struct {
        int first, last;
    } range[ZERO_TRACE_RANGES];
} zero_trace_ranks;

typedef struct {
    zero_plan_request plan; /* `simulated` is set by _make() */
    /* Without the numbers of --machine, --network and --flops, which the plan has. */
    zero_simulate_input input;
    const char *trace; /* the path; NULL: none. One stage only */
    zero_trace_ranks trace_ranks;
} zero_simulation_request;

typedef struct {
    zero_simulation_request request;
    zero_plan_report plan;
    zero_simulate_input input; /* with the plan's machine */
    zero_simulated *results;   /* [plan.n], owned */
} zero_simulation_report;

/* Plans and simulates all stages that are asked for, and writes the trace. The report must stay
 * where it is. Fails, leaving nothing, as the plan, the simulation and the file do. */
ZERO_NODISCARD zero_status zero_simulation_report_make(
    zero_simulation_report *report, const zero_simulation_request *request);
void zero_simulation_report_destroy(zero_simulation_report *report);

/* Simulated / alpha-beta. */
double zero_simulation_ratio(const zero_simulated *s);
/* The share of the reported step in which the busiest link carried something. */
double zero_simulation_busy(const zero_simulated *s);
double zero_simulation_tokens(const zero_simulation_report *report,
                              const zero_simulated *s); /* per second */
