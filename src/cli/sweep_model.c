#include "cli/sweep_model.h"

#include "base/fail.h"
#include "io/json_input.h"

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
    c->stage = p->stage;
    c->init_from = NULL; /* it decides nothing but the shape */
    c->fake_nodes = p->nodes;
    ZERO_TRY(read_shape(p->name, p->run, c));
    ZERO_TRY(zero_json_text(p->name, p->run, "collectives", &c->collectives));
    *request = r;
    return ZERO_OK;
}

zero_status zero_sweep_model_plan(const zero_sweep_options *options,
                                  zero_sweep_point *point)
{
    zero_plan_request request;
    zero_plan_report report;
    if (!options->request.has_time && !options->request.has_file) return ZERO_OK;
    ZERO_TRY(describe(options, point, &request));
    ZERO_TRY(zero_plan_report_make(&report, &request));
    const zero_plan_time *time = &report.stages[0].time;
    if (report.request.has_time)
        point->planned = (zero_sweep_model){time->step, time->exposed / time->step};
    zero_plan_report_destroy(&report);
    return ZERO_OK;
}
