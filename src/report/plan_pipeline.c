#include "report/plan_pipeline.h"

#include <math.h>
#include <stdlib.h>
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

static zero_pipeline_input input_of(const zero_plan_report *r)
{
    const zero_schedule *plain = &r->stages[0].schedule;
    zero_pipeline_input in = {.plan = plain->input,
                              .n_stages = r->request.pipeline,
                              .staging = plain->class_peak[ZERO_CLASS_BUCKETS]};
    in.plan.n_ranks = r->request.n_ranks / r->request.pipeline;
    in.plan.accumulation *= r->request.pipeline;
    in.plan.layout = in.plan.world_layout = NULL;
    return in;
}

static zero_status time_pipeline(const zero_plan_report *r, zero_plan_pipeline *p,
                                 zero_pipe_cost *costs)
{
    const zero_plan_machine ideal = {.bandwidth = INFINITY, .flops = 1.0};
    const zero_plan_machine *machine = r->request.has_time ? &r->request.machine : &ideal;
    zero_pipeline_time alone;
    zero_pipeline_costs(&p->pipeline, machine->flops, costs);
    ZERO_TRY(zero_pipeline_walk(&p->pipeline, costs, &ideal, ZERO_PIPELINE_ROOM, &alone));
    p->bubble = alone.idle;
    return zero_pipeline_walk(&p->pipeline, costs, machine, ZERO_PIPELINE_ROOM, &p->time);
}

zero_status zero_plan_pipelines_make(zero_plan_report *r)
{
    const zero_pipeline_input in = input_of(r);
    zero_pipe_cost *costs = calloc((size_t)in.n_stages, sizeof *costs);
    zero_status st = ZERO_OK;
    if (!costs)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d pipeline stages", in.n_stages);
    for (int k = 0; st == ZERO_OK && k < ZERO_PIPELINE_KINDS; k++) {
        zero_plan_pipeline *p = &r->pipelines[k];
        st = zero_pipeline_make(&p->pipeline, (zero_pipeline_kind)k, &in);
        if (st == ZERO_OK) st = time_pipeline(r, p, costs);
    }
    free(costs);
    return st;
}

/* ---- words ---- */

int zero_plan_pipeline_stage(const zero_plan_report *r)
{
    return r->request.rank / (r->request.n_ranks / r->request.pipeline);
}

int zero_plan_pipeline_extreme(const zero_pipeline *p, bool most)
{
    int found = 0;
    for (int s = 1; s < p->input.n_stages; s++) {
        size_t bytes = p->stages[s].ledger.peak_bytes;
        size_t before = p->stages[found].ledger.peak_bytes;
        if (most ? bytes > before : bytes < before) found = s;
    }
    return found;
}

void zero_plan_pipe_operand(const zero_pipeline *p, int stage,
                            const zero_pipe_instruction *i, char text[64])
{
    const zero_model *model = p->input.plan.model;
    const zero_pipe_stage *at = &p->stages[stage];
    bool is_pass = i->op == ZERO_PIPE_FORWARD || i->op == ZERO_PIPE_BACKWARD;
    text[0] = '\0';
    if (i->group >= 0)
        snprintf(text, 64, "%.40s", model->groups[i->group].name);
    else if (is_pass && at->end_unit - at->first_unit == 1)
        snprintf(text, 64, "%.40s", model->units[at->first_unit].name);
    else if (is_pass)
        snprintf(text, 64, "%.24s to %.24s", model->units[at->first_unit].name,
                 model->units[at->end_unit - 1].name);
}
