#include "report/plan_json_setup.h"

#include "report/json_put.h"
#include "report/plan_machine.h"

static json_t *model_json(const zero_plan_report *r)
{
    const zero_gpt2_shape *s = &r->shape;
    json_t *object = json_object();
    put_text(object, "name", r->config.model);
    put_whole(object, "layers", s->layers);
    put_whole(object, "hidden", s->hidden);
    put_whole(object, "heads", s->heads);
    put_whole(object, "seq", s->seq);
    put_whole(object, "vocab", s->vocab);
    put_text(object, "vocab_from", r->whose_vocab);
    put_whole(object, "parameters", r->model.n_params);
    return object;
}

static json_t *machine_json(const zero_plan_report *r)
{
    const zero_plan_request *request = &r->request;
    const zero_plan_machine *m = &request->machine;
    json_t *object = json_object();
    zero_plan_machine_put(r, object);
    if (request->has_network) {
        put_real(object, "latency_seconds", m->latency);
        put_real(object, "bytes_per_second", m->bandwidth);
        if (m->node_bandwidth > 0.0) {
            put_real(object, "node_latency_seconds", m->node_latency);
            put_real(object, "node_bytes_per_second", m->node_bandwidth);
        }
    }
    if (m->host_bandwidth > 0.0)
        put_real(object, "host_bytes_per_second", m->host_bandwidth);
    if (request->has_disk) {
        put_real(object, "disk_read_bytes_per_second", m->disk_read);
        put_real(object, "disk_write_bytes_per_second", m->disk_write);
    }
    put_real(object, "flops_per_second", m->flops);
    return object;
}

/* The share of the rank that is shown; a simulation shows none. */
static json_t *shares_json(const zero_plan_report *r)
{
    const zero_share *share = &r->part->share;
    bool has_rank = !r->request.simulated;
    json_t *object = json_object();
    put_whole(object, "ranks", share->ranks);
    put_whole(object, "slices", share->slices);
    if (has_rank) put_whole(object, "rank", share->rank);
    put_whole(object, "data_ranks", r->config.data_ranks);
    if (has_rank) put_whole(object, "data_rank", r->place.rank);
    if (has_rank) put_whole(object, "parameters", r->part->n_params);
    return object;
}

/* The ranks that shard together with the rank that is shown, and their replicas. */
static json_t *shards_json(const zero_plan_report *r)
{
    const zero_shard_place *at = &r->stages[0].schedule.shard;
    bool has_rank = !r->request.simulated;
    json_t *object = json_object();
    put_whole(object, "ranks", at->size);
    if (has_rank) put_whole(object, "rank", at->rank);
    put_whole(object, "replicas", at->replicas);
    if (has_rank) put_whole(object, "replica", at->replica);
    return object;
}

void zero_plan_put_setup(const zero_plan_report *r, json_t *object)
{
    const zero_config *c = &r->config;
    json_object_set_new(object, "model", model_json(r));
    put_whole(object, "ranks", r->request.n_ranks);
    if (!r->request.simulated) put_whole(object, "rank", r->request.rank);
    put_whole(object, "nodes", r->layout.n_nodes);
    json_object_set_new(object, "tp", shares_json(r));
    json_object_set_new(object, "shards", shards_json(r));
    put_text(object, "dtype", c->dtype);
    put_text(object, "activations", zero_type_name(zero_config_activations(c)));
    put_text(object, "partition", c->partition);
    put_text(object, "collectives", zero_algorithm_name(r->collectives));
    put_whole(object, "bucket", r->stages[0].schedule.input.bucket);
    if (c->message > 0) put_whole(object, "message", c->message);
    put_whole(object, "global_batch", c->global_batch);
    put_whole(object, "micro_batch", c->micro_batch);
    put_whole(object, "accumulation", c->accumulation);
    put_whole(object, "tokens_per_step", c->global_batch * r->shape.seq);
    json_object_set_new(object, "recompute", json_boolean(c->recompute));
    if (c->partition_activations)
        json_object_set_new(object, "partition_activations", json_true());
    json_object_set_new(object, "reproducible", json_boolean(c->reproducible));
    json_object_set_new(object, "node_parameters", json_boolean(c->node_parameters));
    if (c->memory_limit > 0 && !r->request.simulated)
        put_whole(object, "memory_limit", c->memory_limit);
    if (r->request.fit > 0) put_whole(object, "fit", r->request.fit);
    if (r->request.fit_disk > 0) put_whole(object, "fit_disk", r->request.fit_disk);
    if (r->request.has_time) json_object_set_new(object, "machine", machine_json(r));
}
