/* The first line of the metrics: what the run is. */
#include "train/metrics.h"
#include "train/metrics_parts.h"

static json_t *model(const zero_metrics_run *r)
{
    const zero_gpt2_shape *g = r->shape;
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "name", r->model, "layers",
                     (json_int_t)g->layers, "hidden", (json_int_t)g->hidden, "heads",
                     (json_int_t)g->heads, "seq", (json_int_t)g->seq, "vocab",
                     (json_int_t)g->vocab, "parameters", (json_int_t)r->n_params);
}

static json_t *hosts(const zero_metrics_run *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_hosts; i++)
        json_array_append_new(list, zero_metrics_text(r->hosts[i].name));
    return list;
}

static json_t *origin(const zero_metrics_run *r)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:I}", "version", r->version, "commit",
                     r->commit, "build", r->build, "started", r->started, "id",
                     (json_int_t)r->id, "command", zero_metrics_text(r->command),
                     "resumed_step", (json_int_t)r->start);
}

static json_t *sharding(const zero_metrics_run *r)
{
    const zero_share *share = &r->plan->model->share;
    int N = r->plan->n_ranks, R = r->plan->shard_ranks > 0 ? r->plan->shard_ranks : N;
    return json_pack("{s:i, s:s, s:s, s:s, s:i, s:{s:i, s:i}, s:{s:i, s:i}, s:o}", "stage",
                     r->plan->stage, "dtype", zero_type_name(r->plan->type), "activations",
                     zero_type_name(r->plan->activations), "collectives",
                     zero_algorithm_name(r->plan->collectives), "ranks", r->layout->size,
                     "tp", "ranks", share->ranks, "slices", share->slices, "shards",
                     "ranks", R, "replicas", N / R, "nodes",
                     zero_metrics_nodes(r->layout, r->fake_nodes));
}

/* The arithmetic of ranks by their numbers; NULL if all have the same. */
static json_t *kinds(const zero_metrics_run *r)
{
    json_t *list = r->n_kinds > 1 ? json_array() : NULL;
    for (int k = 0; k < r->n_kinds && list; k++)
        json_array_append_new(list,
                              json_pack("{s:s, s:o}", "ranks", r->kinds[k].ranks.chars,
                                        "arithmetic", zero_metrics_text(r->kinds[k].text)));
    return list;
}

static json_t *machine(const zero_metrics_run *r)
{
    return json_pack("{s:o, s:s, s:i, s:i, s:s, s:s, s:i, s:s, s:o*}", "hosts", hosts(r),
                     "cpu", r->cpu, "cores", r->cores, "node_cores", r->node_cores,
                     "arithmetic", r->arithmetic, "blas", r->blas, "blas_threads",
                     r->blas_threads, "mpi", r->mpi, "rank_kinds", kinds(r));
}

/* Adds the members of `part`, which it takes over; false without memory. */
static bool add_members(json_t *run, json_t *part)
{
    bool added = run && part && json_object_update(run, part) == 0;
    json_decref(part);
    return added;
}

static bool add_copy(json_t *run, const char *key, const json_t *value)
{
    return json_object_set_new(run, key, json_deep_copy(value)) == 0;
}

json_t *zero_metrics_run_facts(const zero_metrics_run *r)
{
    json_t *run = json_object();
    bool whole = add_members(run, origin(r)) && add_members(run, sharding(r)) &&
                 add_members(run, machine(r)) &&
                 json_object_set_new(run, "model", model(r)) == 0 &&
                 json_object_set_new(run, "data", zero_metrics_text(r->data)) == 0 &&
                 add_copy(run, "options", r->options) && add_copy(run, "config", r->config);
    if (whole) return run;
    json_decref(run);
    return NULL;
}

void zero_metrics_run_line(zero_metrics *m, const zero_metrics_run *r)
{
    if (!m->file.is_open) return;
    json_t *run = zero_metrics_run_facts(r);
    json_object_set_new(run, "schedule", zero_metrics_schedule(r->schedule));
    zero_metrics_write(m, json_pack("{s:o}", "run", run));
}
