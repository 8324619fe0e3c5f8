#include "report/simulation_report.h"

#include "report/json_put.h"
#include "report/plan_facts.h"

/* ---- making ---- */

zero_status zero_simulation_report_plan(zero_simulation_report *report,
                                        const zero_simulation_request *request)
{
    *report = (zero_simulation_report){.request = *request, .input = request->input};
    report->request.plan.simulated = true;
    ZERO_TRY(zero_plan_report_make(&report->plan, &report->request.plan));
    report->input.machine = report->plan.request.machine; /* --machine has filled it in */
    zero_status st = zero_new(&report->results, report->plan.n, "results of stages");
    if (st != ZERO_OK) zero_simulation_report_destroy(report);
    return st;
}

zero_status zero_simulation_report_run(zero_simulation_report *r)
{
    for (int k = 0; k < r->plan.n; k++) {
        ZERO_TRY(zero_simulate(&r->plan.stages[k].schedule, &r->input, &r->results[k]));
        ZERO_INVALID_IF(!isfinite(r->results[k].step),
                        "a simulated step has no finite time: give higher rates "
                        "(--network, --node-network, --adapter, --disk, --flops)");
        r->input.span = NULL;
        r->input.flight = NULL;
    }
    return ZERO_OK;
}

zero_status zero_simulation_report_make(zero_simulation_report *report,
                                        const zero_simulation_request *request)
{
    ZERO_TRY(zero_simulation_report_plan(report, request));
    zero_status st = zero_simulation_report_run(report);
    if (st != ZERO_OK) zero_simulation_report_destroy(report);
    return st;
}

void zero_simulation_report_destroy(zero_simulation_report *report)
{
    free(report->results);
    zero_plan_report_destroy(&report->plan);
    *report = (zero_simulation_report){0};
}

/* ---- facts ---- */

static json_t *rank_facts(const zero_simulated_rank *rank)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "step_seconds", rank->step,
                     "compute_seconds", rank->compute, "sums_seconds", rank->sums,
                     "exposed_seconds", rank->exposed, "waiting_seconds", rank->waiting,
                     "disk_seconds", rank->disk);
}

/* busy_share: of the reported step. */
static json_t *link_facts(const zero_simulated *s)
{
    static const char *const kinds[] = {
        [ZERO_LINK_RANK_OUT] = "rank_out",     [ZERO_LINK_RANK_IN] = "rank_in",
        [ZERO_LINK_INSIDE_OUT] = "inside_out", [ZERO_LINK_INSIDE_IN] = "inside_in",
        [ZERO_LINK_NODE_OUT] = "adapter_out",  [ZERO_LINK_NODE_IN] = "adapter_in",
        [ZERO_LINK_SWITCH_UP] = "switch_up",   [ZERO_LINK_SWITCH_DOWN] = "switch_down",
    };
    const zero_link_use *link = &s->busiest;
    if (link->busy <= 0.0) return json_null();
    return json_pack("{s:s, s:i, s:f, s:f, s:I}", "kind", kinds[link->kind], "which",
                     link->which, "busy_seconds", link->busy, "busy_share",
                     link->busy / s->step, "bytes", link->bytes);
}

zero_status zero_simulation_show(const zero_simulation_report *r, bool json, FILE *out)
{
    json_t *object = zero_plan_setup_facts(&r->plan), *stages = json_array();
    /* The options of `simulate`; rates without a limit are left out. */
    const zero_simulate_input *in = &r->input;
    json_t *options = json_pack("{s:i}", "steps", in->steps), *slow = json_array();
    if (!isinf(in->adapter))
        zero_put_real(options, "adapter_bytes_per_second", in->adapter);
    if (in->switch_nodes > 0) {
        zero_put_whole(options, "switch_nodes", in->switch_nodes);
        zero_put_real(options, "switch_ratio", in->switch_ratio);
    }
    if (!isinf(in->memory_bandwidth))
        zero_put_real(options, "memory_bytes_per_second", in->memory_bandwidth);
    zero_put_real(options, "poll_seconds", in->poll);
    for (int k = 0; k < in->n_slow; k++)
        zero_put_item(slow, "{s:i, s:f}", "rank", in->slow[k].rank, "factor",
                      in->slow[k].factor);
    json_object_set_new(options, "slow", slow);
    json_object_set_new(object, "simulation", options);
    for (int k = 0; k < r->plan.n; k++) {
        const zero_simulated *s = &r->results[k];
        double tokens = (double)(r->plan.config.global_batch * r->plan.shape.seq);
        json_t *one = json_pack(
            "{s:i, s:f, s:f, s:i, s:o, s:o, s:o, s:I, s:I, s:o, s:f}", "stage",
            zero_plan_stage_number(&r->plan.stages[k]), "simulated_step_seconds", s->step,
            "simulated_tokens_per_second", tokens / s->step, "slowest_rank", s->slowest,
            "of_slowest_rank", rank_facts(&s->of_slowest), "mean_of_ranks",
            rank_facts(&s->mean), "busiest_link", link_facts(s), "messages", s->messages,
            "events", s->events, "alpha_beta", zero_plan_time_facts(&r->plan, &s->plan),
            "simulated_to_alpha_beta", s->step / s->plan.step);
        if (zero_plan_stages(&r->plan.config.plan) > 1) zero_put_real(one, "idle", s->idle);
        json_array_append_new(stages, one);
    }
    json_object_set_new(object, "stages", stages);
    if (json) return zero_json_print(object, JSON_INDENT(2), out);
    zero_put_whole(object, "as_slow", r->results[0].as_slow);
    zero_put_real(object, "disk_exposed", r->results[0].plan.disk_exposed);
    return zero_report_print("simulation", object, out);
}
