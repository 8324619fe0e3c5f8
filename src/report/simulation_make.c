#include "report/simulation_report.h"

#include <math.h>
#include <stdlib.h>

#include "base/fail.h"

static zero_status simulate_stage(const zero_simulation_report *r, int k)
{
    ZERO_TRY(zero_simulate(&r->plan.stages[k].schedule, &r->input, &r->results[k]));
    if (isfinite(r->results[k].step)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "a simulated step has no finite time: give higher rates (--network, "
                     "--node-network, --adapter, --disk, --flops)");
}

static zero_status simulate(zero_simulation_report *r)
{
    r->results = calloc((size_t)r->plan.n, sizeof *r->results);
    if (!r->results)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d results", r->plan.n);
    if (r->request.watcher) {
        const zero_simulation_watcher *w = r->request.watcher;
        ZERO_TRY(w->begin(w->arg, r, &r->input));
        zero_status st = simulate_stage(r, 0);
        r->input.span = NULL;
        r->input.flight = NULL;
        ZERO_TRY(w->end(w->arg, st));
    }
    for (int k = r->request.watcher ? 1 : 0; k < r->plan.n; k++)
        ZERO_TRY(simulate_stage(r, k));
    return ZERO_OK;
}

zero_status zero_simulation_report_make(zero_simulation_report *report,
                                        const zero_simulation_request *request)
{
    *report = (zero_simulation_report){.request = *request, .input = request->input};
    report->request.plan.simulated = true;
    ZERO_TRY(zero_plan_report_make(&report->plan, &report->request.plan));
    report->input.machine = report->plan.request.machine; /* --machine has filled it in */
    zero_status st = simulate(report);
    if (st != ZERO_OK) zero_simulation_report_destroy(report);
    return st;
}

void zero_simulation_report_destroy(zero_simulation_report *report)
{
    free(report->results);
    zero_plan_report_destroy(&report->plan);
    *report = (zero_simulation_report){0};
}

double zero_simulation_ratio(const zero_simulated *s)
{
    return s->step / s->plan.step;
}

double zero_simulation_busy(const zero_simulated *s)
{
    return s->busiest.busy / s->step;
}

double zero_simulation_tokens(const zero_simulation_report *r, const zero_simulated *s)
{
    return (double)(r->plan.config.global_batch * r->plan.shape.seq) / s->step;
}
