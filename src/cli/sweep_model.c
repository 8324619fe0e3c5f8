#include "cli/sweep_model.h"

#include <stdio.h>

#include "base/fail.h"
#include "io/json_input.h"
#include "report/simulation_report.h"
#include "report/text.h"

#define MOST INT64_C(2147483647)

static zero_status read_shape(const char *where, const json_t *run, zero_config *c)
{
    const json_t *model;
    ZERO_TRY(zero_json_object(where, run, "model", &model));
    ZERO_TRY(zero_json_whole(where, model, "layers", 1, MOST, &c->layers));
    ZERO_TRY(zero_json_whole(where, model, "hidden", 1, MOST, &c->hidden));
    ZERO_TRY(zero_json_whole(where, model, "heads", 1, MOST, &c->heads));
    ZERO_TRY(zero_json_whole(where, model, "seq", 1, MOST, &c->seq));
    return zero_json_whole(where, model, "vocab", 1, MOST, &c->vocab);
}

/* The point's job, as it ran. */
static zero_status describe(const zero_sweep_options *o, const zero_sweep_point *p,
                            zero_plan_request *request)
{
    zero_plan_request r = o->request;
    zero_config *c = &r.config;
    r.n_ranks = p->ranks;
    c->plan.stage = p->stage;
    c->init_from = NULL; /* it decides nothing but the shape */
    c->fake_nodes = p->nodes;
    ZERO_TRY(read_shape(p->name, p->run, c));
    ZERO_TRY(zero_json_text(p->name, p->run, "collectives", &c->collectives));
    *request = r;
    return ZERO_OK;
}

static zero_status plan(const zero_sweep_options *options, zero_sweep_point *point)
{
    zero_plan_request request;
    zero_plan_report report;
    ZERO_TRY(describe(options, point, &request));
    ZERO_TRY(zero_plan_report_make(&report, &request));
    const zero_plan_time *time = &report.stages[0].time;
    if (report.request.has_time)
        point->planned = (zero_sweep_model){time->step, time->exposed / time->step};
    zero_plan_report_destroy(&report);
    return ZERO_OK;
}

/* In a run a rank that waits for data and one that waits for a neighbour look alike. */
static zero_status simulate(const zero_sweep_options *options, zero_sweep_point *point)
{
    zero_simulation_request request = {.input = options->simulation};
    zero_simulation_report report;
    ZERO_TRY(describe(options, point, &request.plan));
    ZERO_TRY(zero_simulation_report_make(&report, &request));
    const zero_simulated *s = &report.results[0];
    double waits = s->mean.exposed + s->mean.waiting;
    point->simulated = (zero_sweep_model){s->step, waits / s->step};
    zero_simulation_report_destroy(&report);
    return ZERO_OK;
}

static void warn(const zero_sweep_point *p, const char *what)
{
    fprintf(stderr, "zero: warning: stage %d on %d rank%s has no %s time: %s\n", p->stage,
            p->ranks, zero_text_plural(p->ranks), what, zero_last_error());
}

void zero_sweep_model_point(const zero_sweep_options *options, zero_sweep_point *point)
{
    if (zero_sweep_has_plan(options) && plan(options, point) != ZERO_OK)
        warn(point, "planned");
    if (zero_sweep_has_simulation(options) && simulate(options, point) != ZERO_OK)
        warn(point, "simulated");
}
