#include "cli/sweep_model.h"

#include <stdio.h>

#include "base/fail.h"
#include "facts/facts.h"
#include "io/json_input.h"
#include "report/simulation_report.h"

#define MOST INT64_C(2147483647)

/* The point's job, as it ran. */
static zero_status describe(const zero_sweep_options *o, const json_t *point,
                            zero_plan_request *request)
{
    zero_plan_request r = o->request;
    zero_config *c = &r.config;
    const json_t *run = json_object_get(point, "run"), *model;
    const char *where = "the first line of its metrics";
    r.n_ranks = (int)zero_point_whole(point, "ranks");
    c->plan.stage = (int)zero_point_whole(point, "stage");
    c->init_from = NULL; /* it decides nothing but the shape */
    c->fake_nodes = (int)zero_fact_number(point, "nodes/count");
    ZERO_TRY(zero_json_object(where, run, "model", &model));
    ZERO_TRY(zero_json_whole(where, model, "layers", 1, MOST, &c->shape.layers));
    ZERO_TRY(zero_json_whole(where, model, "hidden", 1, MOST, &c->shape.hidden));
    ZERO_TRY(zero_json_whole(where, model, "heads", 1, MOST, &c->shape.heads));
    ZERO_TRY(zero_json_whole(where, model, "seq", 1, MOST, &c->shape.seq));
    ZERO_TRY(zero_json_whole(where, model, "vocab", 1, MOST, &c->shape.vocab));
    ZERO_TRY(zero_json_text(where, run, "collectives", &c->collectives));
    *request = r;
    return ZERO_OK;
}

/* Seconds of a step, and the share of them that waits for the network. */
static json_t *model(double step, double waits)
{
    return json_pack("{s:f, s:f}", "step_seconds", step, "exposed_share", waits / step);
}

static zero_status plan(const zero_sweep_options *options, const json_t *point,
                        json_t **planned)
{
    zero_plan_request request;
    zero_plan_report report;
    ZERO_TRY(describe(options, point, &request));
    ZERO_TRY(zero_plan_report_make(&report, &request));
    const zero_plan_time *time = &report.stages[0].time;
    if (report.request.has_time) *planned = model(time->step, time->exposed);
    zero_plan_report_destroy(&report);
    return ZERO_OK;
}

/* In a run a rank that waits for data and one that waits for a neighbour look alike. */
static zero_status simulate(const zero_sweep_options *options, const json_t *point,
                            json_t **simulated)
{
    zero_simulation_request request = {.input = options->simulation};
    zero_simulation_report report;
    ZERO_TRY(describe(options, point, &request.plan));
    ZERO_TRY(zero_simulation_report_make(&report, &request));
    const zero_simulated *s = &report.results[0];
    *simulated = model(s->step, s->mean.exposed + s->mean.waiting);
    zero_simulation_report_destroy(&report);
    return ZERO_OK;
}

void zero_sweep_model_point(const zero_sweep_options *options, json_t *point)
{
    static const struct {
        const char *key;
        bool (*is_asked)(const zero_sweep_options *options);
        zero_status (*make)(const zero_sweep_options *options, const json_t *point,
                            json_t **model);
    } models[] = {{"planned", zero_sweep_has_plan, plan},
                  {"simulated", zero_sweep_has_simulation, simulate}};
    for (int k = 0; k < 2; k++) {
        json_t *made = NULL;
        char words[ZERO_POINT_TEXT];
        if (models[k].is_asked(options) && models[k].make(options, point, &made) != ZERO_OK)
            fprintf(stderr, "zero: warning: %s has no %s time: %s\n",
                    zero_point_words(point, words), models[k].key, zero_last_error());
        json_object_set_new(point, models[k].key, made ? made : json_null());
    }
}
