#include "report/simulation_report.h"

#include <math.h>

#include "base/fail.h"
#include "report/json_put.h"
#include "report/plan_facts.h"

/* The options of `simulate`; rates without a limit are left out. */
static json_t *input_json(const zero_simulate_input *in)
{
    json_t *object = json_pack("{s:i}", "steps", in->steps), *slow = json_array();
    if (!isinf(in->adapter)) put_real(object, "adapter_bytes_per_second", in->adapter);
    if (in->switch_nodes > 0) {
        put_whole(object, "switch_nodes", in->switch_nodes);
        put_real(object, "switch_ratio", in->switch_ratio);
    }
    if (!isinf(in->memory_bandwidth))
        put_real(object, "memory_bytes_per_second", in->memory_bandwidth);
    put_real(object, "poll_seconds", in->poll);
    for (int k = 0; k < in->n_slow; k++)
        json_array_append_new(slow, json_pack("{s:i, s:f}", "rank", in->slow[k].rank,
                                              "factor", in->slow[k].factor));
    json_object_set_new(object, "slow", slow);
    return object;
}

static json_t *rank_json(const zero_simulated_rank *rank)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "step_seconds", rank->step,
                     "compute_seconds", rank->compute, "sums_seconds", rank->sums,
                     "exposed_seconds", rank->exposed, "waiting_seconds", rank->waiting,
                     "disk_seconds", rank->disk);
}

static json_t *link_json(const zero_simulated *s)
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
                     zero_simulation_busy(s), "bytes", (json_int_t)link->bytes);
}

static json_t *stage_json(const zero_simulation_report *r, int k)
{
    const zero_simulated *s = &r->results[k];
    return json_pack("{s:i, s:f, s:f, s:i, s:o, s:o, s:o, s:I, s:I, s:o, s:f}", "stage",
                     zero_plan_stage_number(&r->plan.stages[k]), "simulated_step_seconds",
                     s->step, "simulated_tokens_per_second", zero_simulation_tokens(r, s),
                     "slowest_rank", s->slowest, "of_slowest_rank",
                     rank_json(&s->of_slowest), "mean_of_ranks", rank_json(&s->mean),
                     "busiest_link", link_json(s), "messages", (json_int_t)s->messages,
                     "events", (json_int_t)s->events, "alpha_beta",
                     zero_plan_time_facts(&r->plan, &s->plan), "simulated_to_alpha_beta",
                     zero_simulation_ratio(s));
}

zero_status zero_simulation_show_json(const zero_simulation_report *r, FILE *out)
{
    json_t *object = zero_plan_setup_facts(&r->plan), *stages = json_array();
    json_object_set_new(object, "simulation", input_json(&r->input));
    for (int k = 0; k < r->plan.n; k++) json_array_append_new(stages, stage_json(r, k));
    json_object_set_new(object, "stages", stages);
    return zero_json_print(object, JSON_INDENT(2), out);
}
