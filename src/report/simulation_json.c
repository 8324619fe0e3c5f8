#include "report/simulation_json.h"

#include <math.h>

#include "base/fail.h"
#include "report/json_put.h"
#include "report/plan_facts.h"
#include "report/simulation_show.h"

static json_t *slow_json(const zero_simulate_input *in)
{
    json_t *list = json_array();
    for (int k = 0; k < in->n_slow; k++) {
        json_t *one = json_object();
        put_whole(one, "rank", in->slow[k].rank);
        put_real(one, "factor", in->slow[k].factor);
        json_array_append_new(list, one);
    }
    return list;
}

/* The options of `simulate`; rates without a limit are left out. */
static json_t *input_json(const zero_simulate_input *in)
{
    json_t *object = json_object();
    put_whole(object, "steps", in->steps);
    if (!isinf(in->adapter)) put_real(object, "adapter_bytes_per_second", in->adapter);
    if (in->switch_nodes > 0) {
        put_whole(object, "switch_nodes", in->switch_nodes);
        put_real(object, "switch_ratio", in->switch_ratio);
    }
    if (!isinf(in->memory_bandwidth))
        put_real(object, "memory_bytes_per_second", in->memory_bandwidth);
    put_real(object, "poll_seconds", in->poll);
    json_object_set_new(object, "slow", slow_json(in));
    return object;
}

static json_t *rank_json(const zero_simulated_rank *rank)
{
    json_t *object = json_object();
    put_real(object, "step_seconds", rank->step);
    put_real(object, "compute_seconds", rank->compute);
    put_real(object, "sums_seconds", rank->sums);
    put_real(object, "exposed_seconds", rank->exposed);
    put_real(object, "waiting_seconds", rank->waiting);
    put_real(object, "disk_seconds", rank->disk);
    return object;
}

static json_t *link_json(const zero_simulated *s)
{
    static const char *const kinds[] = {
        [ZERO_LINK_RANK_OUT] = "rank_out",     [ZERO_LINK_RANK_IN] = "rank_in",
        [ZERO_LINK_INSIDE_OUT] = "inside_out", [ZERO_LINK_INSIDE_IN] = "inside_in",
        [ZERO_LINK_NODE_OUT] = "adapter_out",  [ZERO_LINK_NODE_IN] = "adapter_in",
        [ZERO_LINK_SWITCH_UP] = "switch_up",   [ZERO_LINK_SWITCH_DOWN] = "switch_down",
    };
    json_t *object = json_object();
    put_text(object, "kind", kinds[s->busiest.kind]);
    put_whole(object, "which", s->busiest.which);
    put_real(object, "busy_seconds", s->busiest.busy);
    put_real(object, "busy_share", zero_simulation_busy(s));
    put_whole(object, "bytes", s->busiest.bytes);
    return object;
}

static json_t *stage_json(const zero_simulation_report *r, int k)
{
    const zero_simulated *s = &r->results[k];
    json_t *object = json_object();
    put_whole(object, "stage", zero_plan_stage_number(&r->plan.stages[k]));
    put_real(object, "simulated_step_seconds", s->step);
    put_real(object, "simulated_tokens_per_second", zero_simulation_tokens(r, s));
    put_whole(object, "slowest_rank", s->slowest);
    json_object_set_new(object, "of_slowest_rank", rank_json(&s->of_slowest));
    json_object_set_new(object, "mean_of_ranks", rank_json(&s->mean));
    json_object_set_new(object, "busiest_link",
                        s->busiest.busy > 0.0 ? link_json(s) : json_null());
    put_whole(object, "messages", s->messages);
    put_whole(object, "events", s->events);
    json_object_set_new(object, "alpha_beta", zero_plan_time_facts(&r->plan, &s->plan));
    put_real(object, "simulated_to_alpha_beta", zero_simulation_ratio(s));
    return object;
}

zero_status zero_simulation_show_json(const zero_simulation_report *r, FILE *out)
{
    json_t *object = zero_plan_setup_facts(&r->plan), *stages = json_array();
    json_object_set_new(object, "simulation", input_json(&r->input));
    for (int k = 0; k < r->plan.n; k++) json_array_append_new(stages, stage_json(r, k));
    json_object_set_new(object, "stages", stages);
    return zero_json_print(object, JSON_INDENT(2), out);
}
