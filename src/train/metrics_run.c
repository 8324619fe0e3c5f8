/* The first line of the metrics: what the run is. */
#include "nn/shape.h"
#include "train/metrics.h"

static json_t *hosts(const zero_metrics_run *r)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n_hosts; i++)
        json_array_append_new(list, zero_metrics_text(r->hosts[i].name));
    return list;
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

json_t *zero_metrics_run_facts(const zero_metrics_run *r)
{
    const zero_plan_input *plan = r->plan;
    int N = plan->n_ranks, R = plan->shard_ranks > 0 ? plan->shard_ranks : N;
    json_t *model = json_pack("{s:s}", "name", r->model);
    json_object_update_new(model, zero_shape_facts(r->shape));
    json_object_set_new(model, "parameters", json_integer(r->n_params));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:o, s:I, s:i, s:s, s:s, s:s, s:i, s:{s:i, s:i}, "
        "s:{s:i, s:i}, s:o, s:o, s:s, s:i, s:i, s:s, s:s, s:i, s:s, s:o*, "
        "s:o, s:o, s:o, s:o}",
        "version", r->version, "commit", r->commit, "build", r->build, "started",
        r->started, "id", (json_int_t)r->id, "command", zero_metrics_text(r->command),
        "resumed_step", (json_int_t)r->start, /* how it is divided */
        "stage", plan->stage, "dtype", zero_type_name(plan->type), "activations",
        zero_type_name(plan->activations), "collectives",
        zero_algorithm_name(plan->collectives), "ranks", r->layout->size, "tp", "ranks",
        plan->model->share.ranks, "slices", plan->model->share.slices, "shards", "ranks", R,
        "replicas", N / R, "nodes", zero_metrics_nodes(r->layout, r->fake_nodes), "hosts",
        hosts(r), "cpu", r->cpu, "cores", r->cores, "node_cores", r->node_cores,
        "arithmetic", r->arithmetic, "blas", r->blas, "blas_threads", r->blas_threads,
        "mpi", r->mpi, "rank_kinds", kinds(r), /* what is trained */
        "model", model, "data", zero_metrics_text(r->data), "options",
        json_deep_copy(r->options), "config", json_deep_copy(r->config));
}

void zero_metrics_run_line(zero_metrics *m, const zero_metrics_run *r)
{
    if (!m->file.is_open) return;
    json_t *run = zero_metrics_run_facts(r);
    if (run) json_object_set_new(run, "schedule", zero_metrics_schedule(r->schedule));
    zero_metrics_write(m, run ? json_pack("{s:o}", "run", run) : NULL);
}
