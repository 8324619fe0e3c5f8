#include "report/plan_pipeline.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "report/text.h"

/* ---- what a pipeline cannot be combined with ---- */

static zero_status refuse(const char *option, const char *why)
{
    return zero_fail(ZERO_ERR_INVALID, "--pipeline with %s: %s; leave out one of them",
                     option, why);
}

static zero_status check_options(const zero_plan_report *r)
{
    const zero_config *c = &r->config;
    if (zero_tp_ranks(&c->tp) > 1 || c->tp.slices > 1)
        return refuse("--tp", "pipelines are planned for whole models");
    if (zero_config_has_device(c))
        return refuse("--device", "pipelines are planned for the memory of one CPU");
    if (c->plan.shard_ranks > 0)
        return refuse("--shard-ranks", "the ranks of a stage hold the same, all of them");
    if (c->plan.node_parameters)
        return refuse("--node-parameters", "each rank of a pipeline has a node of its own");
    if (c->offload) return refuse("--offload", "pipelines keep all states in memory");
    if (c->plan.reproducible)
        return refuse("--reproducible", "a pipeline adds microbatches in its own order");
    if (c->plan.partition != ZERO_PARTITION_SLICE)
        return refuse("--partition owner", "it cuts what pipelines do not shard");
    if (r->filled.nodes)
        return refuse("--machine", "it puts ranks on shared nodes, and each rank of a "
                                   "pipeline has a node of its own");
    if (c->fake_nodes > 0)
        return refuse("--fake-nodes", "each rank of a pipeline has a node of its own");
    return ZERO_OK;
}

zero_status zero_plan_pipelines_check(const zero_plan_report *r)
{
    int P = r->request.pipeline, N = r->request.n_ranks;
    int most = zero_pipeline_most_stages(&r->model);
    ZERO_TRY(check_options(r));
    if (N % P != 0)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--pipeline %d: %d rank%s cannot be divided among %d stages; change "
            "--ranks or --pipeline",
            P, N, zero_text_plural(N), P);
    if (P <= most) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--pipeline %d: each stage has a block of the model or more, and there "
        "are %d; expected 2 to %d",
        P, most, most);
}

/* ---- making ---- */

zero_status zero_plan_pipelines_make(zero_plan_report *r)
{
    const zero_plan_machine ideal = {.bandwidth = INFINITY, .flops = 1.0};
    const zero_plan_machine *machine = r->request.has_time ? &r->request.machine : &ideal;
    zero_plan_input plan = r->stages[0].schedule.input;
    plan.n_ranks = r->request.n_ranks / r->request.pipeline;
    plan.accumulation *= r->request.pipeline;
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        zero_plan_pipeline *p = &r->pipelines[k];
        zero_pipeline_time alone;
        ZERO_TRY(zero_pipeline_make(&p->pipeline, (zero_pipeline_kind)k, &plan,
                                    r->request.pipeline));
        ZERO_TRY(zero_pipeline_walk(&p->pipeline, &ideal, &alone));
        ZERO_TRY(zero_pipeline_walk(&p->pipeline, machine, &p->time));
        p->bubble = alone.idle;
    }
    return ZERO_OK;
}

/* ---- words ---- */

int zero_plan_pipeline_stage(const zero_plan_report *r)
{
    return r->request.rank / (r->request.n_ranks / r->request.pipeline);
}

int zero_plan_pipeline_extreme(const zero_pipeline *p, bool most)
{
    int found = 0;
    for (int s = 1; s < p->n_stages; s++) {
        size_t bytes = p->stages[s].schedule.peak_bytes;
        size_t before = p->stages[found].schedule.peak_bytes;
        if (most ? bytes > before : bytes < before) found = s;
    }
    return found;
}
