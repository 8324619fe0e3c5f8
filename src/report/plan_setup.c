/* What a plan is for, as facts: model, ranks, batch, options, machine. */
#include "report/json_put.h"
#include "report/plan_facts.h"
#include "report/text.h"

/* Which machine it is, and what came from it. */
static json_t *file_facts(const zero_plan_report *r)
{
    const zero_machine_file *m = &r->request.file;
    const zero_plan_filled *f = &r->filled;
    const struct {
        const char *name;
        bool is_filled;
    } parts[] = {{"nodes", f->nodes},
                 {"flops", f->flops},
                 {"network", f->network},
                 {"node_network", f->node_network},
                 {"memory", f->memory}};
    json_t *filled = json_array();
    json_t *machine =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:f, s:f}", "name", m->name, "date", m->date,
                  "source", m->source, "fit", m->fit, "filled", filled, "devices_per_node",
                  m->devices, "memory_bytes", m->memory);
    for (int i = 0; i < ZERO_COUNT(parts); i++)
        if (parts[i].is_filled) json_array_append_new(filled, json_string(parts[i].name));
    zero_put_real(machine, "peak_flops_per_second", m->peak[r->config.plan.type]);
    return machine;
}

/* Shard groups and TP groups whose ranks share a node, while other groups need the
 * network. */
static bool exchanges_in_nodes(const zero_schedule *s)
{
    const zero_layout *tp = s->input.tp_layout;
    if (zero_schedule_data_layout(s)->n_nodes == 1) return false;
    return zero_schedule_layout(s)->n_nodes == 1 ||
           (s->n_joins > 0 && (!tp || tp->n_nodes == 1));
}

static json_t *machine_facts(const zero_plan_report *r)
{
    const zero_plan_request *request = &r->request;
    const zero_plan_machine *m = &request->machine;
    json_t *object = request->has_file ? file_facts(r) : json_object();
    if (request->has_network) {
        zero_put_real(object, "latency_seconds", m->latency);
        zero_put_real(object, "bytes_per_second", m->bandwidth);
        zero_put_flag(object, "used_in_nodes", exchanges_in_nodes(&r->stages[0].schedule));
        if (m->node_bandwidth > 0.0) {
            zero_put_real(object, "node_latency_seconds", m->node_latency);
            zero_put_real(object, "node_bytes_per_second", m->node_bandwidth);
        }
    }
    if (m->host_bandwidth > 0.0)
        zero_put_real(object, "host_bytes_per_second", m->host_bandwidth);
    if (request->has_disk) {
        zero_put_real(object, "disk_read_bytes_per_second", m->disk_read);
        zero_put_real(object, "disk_write_bytes_per_second", m->disk_write);
    }
    zero_put_real(object, "flops_per_second", m->flops);
    return object;
}

json_t *zero_plan_pipe_facts(const zero_schedule *s)
{
    const zero_pipeline_place *pipe = &s->pipe;
    const zero_plan_input *in = &s->input;
    const zero_unit *units = in->model->units;
    const int P = pipe->n_stages, m = in->accumulation;
    return json_pack("{s:i, s:i, s:s, s:s, s:s, s:i, s:f, s:i, s:i}", "stages", P, "stage",
                     pipe->stage, "schedule", zero_pipeline_name(in->pp_schedule),
                     "first_unit", units[pipe->first_unit].name, "last_unit",
                     units[pipe->end_unit - 1].name, "microbatches", m, "bubble_formula",
                     zero_pipeline_bubble_formula(P, m), "microbatches_alive",
                     zero_pipeline_live(s), "microbatches_alive_formula",
                     zero_pipeline_live_formula(in->pp_schedule, P, pipe->stage, m));
}

json_t *zero_plan_setup_facts(const zero_plan_report *r)
{
    const zero_config *c = &r->config;
    const zero_plan_input *in = &r->stages[0].schedule.input;
    json_t *model = json_pack("{s:s}", "name", c->model);
    json_object_update_new(model, zero_shape_facts(&r->shape));
    zero_put_string(model, "vocab_from", r->whose_vocab);
    zero_put_whole(model, "parameters", r->model.n_params);
    json_t *object = json_pack("{s:o}", "model", model);
    /* The rank that is shown, its share of the model, and the ranks that shard together
     * with it; a simulation shows none. */
    const zero_share *share = &r->part->share;
    const zero_shard_place *at = &r->stages[0].schedule.shard;
    json_t *tp = json_pack("{s:i, s:i, s:i}", "ranks", share->ranks, "slices",
                           share->slices, "data_ranks", r->config.plan.n_ranks);
    json_t *shards = json_pack("{s:i, s:i}", "ranks", at->size, "replicas", at->replicas);
    zero_put_whole(object, "ranks", r->request.n_ranks);
    if (!r->request.simulated) {
        zero_put_whole(object, "rank", r->request.rank);
        zero_put_whole(tp, "rank", share->rank);
        zero_put_whole(tp, "data_rank", r->place.rank);
        zero_put_whole(tp, "parameters", r->part->n_params);
        zero_put_whole(shards, "rank", at->rank);
        zero_put_whole(shards, "replica", at->replica);
    }
    zero_put_whole(object, "nodes", r->layout.n_nodes);
    if (r->config.fake_nodes == 0 && r->layout.size > 1)
        zero_put_string(object, "node_per",
                        r->layout.n_nodes < r->layout.size ? "TP group" : "rank");
    json_object_set_new(object, "tp", tp);
    json_object_set_new(object, "shards", shards);
    if (r->stages[0].schedule.pipe.n_stages > 1)
        json_object_set_new(object, "pp", zero_plan_pipe_facts(&r->stages[0].schedule));
    json_object_update_new(object, zero_batch_facts(c, r->shape.seq));
    zero_put_members(
        object, "{s:s, s:s, s:s, s:s, s:s*, s:s*, s:I, s:I, s:I, s:I, s:s, s:b, s:b, s:b}",
        "dtype", zero_type_name(c->plan.type), "activations",
        zero_type_name(zero_config_activations(c)), "partition",
        zero_partition_scheme_name(c->plan.partition), "collectives",
        zero_algorithm_name(r->collectives), "why_collectives", r->is_auto ? r->why : NULL,
        "device_exchange",
        in->device && in->n_ranks > 1 ? zero_plan_device_exchange(in) : NULL, "bucket",
        in->bucket, "bucket_option", c->plan.bucket, "prefetch", c->plan.prefetch,
        "persist", c->plan.persist, "overlap", c->plan.serial ? "off" : "on", "recompute",
        c->plan.recompute, "reproducible", c->plan.reproducible, "node_parameters",
        c->plan.node_parameters);
    if (c->plan.message > 0) zero_put_whole(object, "message", c->plan.message);
    if (c->plan.partition_activations) zero_put_flag(object, "partition_activations", true);
    if (c->memory_limit > 0 && !r->request.simulated)
        zero_put_whole(object, "memory_limit", c->memory_limit);
    if (c->device_memory > 0) zero_put_whole(object, "device_memory", c->device_memory);
    if (r->request.fit > 0) zero_put_whole(object, "fit", r->request.fit);
    if (r->request.fit_disk > 0) zero_put_whole(object, "fit_disk", r->request.fit_disk);
    if (r->request.has_time) json_object_set_new(object, "machine", machine_facts(r));
    return object;
}
