#include "report/plan_facts.h"

#include "base/fail.h"
#include "report/json_put.h"
#include "report/plan_program.h"
#include "report/text.h"

/* ---- what a pipeline cannot be combined with ---- */

zero_status zero_plan_pipelines_check(const zero_plan_report *r)
{
    const zero_config *c = &r->config;
    const struct {
        bool is_given;
        const char *option, *why;
    } refused[] = {
        {zero_tp_ranks(&c->tp) > 1 || c->tp.slices > 1, "--tp",
         "pipelines are planned for whole models"},
        {zero_config_has_device(c), "--device",
         "pipelines are planned for the memory of one CPU"},
        {c->plan.shard_ranks > 0, "--shard-ranks",
         "the ranks of a stage hold the same, all of them"},
        {c->plan.node_parameters, "--node-parameters",
         "each rank of a pipeline has a node of its own"},
        {c->offload, "--offload", "pipelines keep all states in memory"},
        {c->plan.reproducible, "--reproducible",
         "a pipeline adds microbatches in its own order"},
        {c->plan.partition != ZERO_PARTITION_SLICE, "--partition owner",
         "it cuts what pipelines do not shard"},
        {r->filled.nodes, "--machine",
         "it puts ranks on shared nodes, and each rank of a pipeline has a node of its "
         "own"},
        {c->fake_nodes > 0, "--fake-nodes",
         "each rank of a pipeline has a node of its own"},
    };
    int P = r->request.pipeline, N = r->request.n_ranks;
    int most = zero_pipeline_most_stages(&r->model);
    for (int i = 0; i < ZERO_COUNT(refused); i++)
        if (refused[i].is_given)
            return zero_fail(ZERO_ERR_INVALID,
                             "--pipeline with %s: %s; leave out one of them",
                             refused[i].option, refused[i].why);
    if (N % P != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--pipeline %d: %d rank%s cannot be divided among %d stages; "
                         "change --ranks or --pipeline",
                         P, N, zero_text_plural(N), P);
    if (P <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--pipeline %d: each stage has a block of the model or more, and "
                     "there are %d; expected 2 to %d",
                     P, most, most);
}

/* ---- making ---- */

zero_status zero_plan_pipelines_make(zero_plan_report *r)
{
    const zero_plan_machine ideal = {.bandwidth = INFINITY, .flops = 1.0};
    const zero_plan_machine *machine = r->request.has_time ? &r->request.machine : &ideal;
    zero_plan_input plan = r->stages[0].schedule.input;
    plan.stage = plan.rank = plan.check_replicas = plan.shard_ranks = 0;
    plan.check_memory = plan.serial = false;
    plan.texts = 0;
    plan.layout = plan.world_layout = NULL;
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

int zero_plan_pipeline_stage(const zero_plan_report *r)
{
    return r->request.rank / (r->request.n_ranks / r->request.pipeline);
}

/* ---- facts ---- */

void zero_plan_put_pipelines(const zero_plan_report *r, json_t *object)
{
    json_t *pipelines = json_array();
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_plan_pipeline *one = &r->pipelines[k];
        const zero_pipeline *p = &one->pipeline;
        const zero_pipeline_time *t = &one->time;
        double tokens = (double)(r->config.global_batch * r->shape.seq);
        json_t *time = json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_seconds", t->step,
                                 "passes_seconds", t->passes, "compute_seconds", t->compute,
                                 "idle", t->idle, "tokens_per_second", tokens / t->step);
        json_t *stages = json_array(),
               *whole = json_pack(
                   "{s:s, s:i, s:i, s:i, s:f, s:f, s:O*, s:O}", "schedule",
                   zero_pipeline_name(p->kind), "stages", p->n_stages, "replicas",
                   p->plan.n_ranks, "microbatches", p->plan.accumulation, "bubble",
                   one->bubble, "bubble_formula",
                   zero_pipeline_bubble_formula(p->n_stages, p->plan.accumulation), "time",
                   r->request.has_time ? time : NULL, "ranks", stages);
        for (int stage = 0; stage < p->n_stages; stage++) {
            const zero_schedule *s = &p->stages[stage].schedule;
            const zero_pipe_ledger *l = &p->stages[stage].ledger;
            const zero_unit *units = p->plan.model->units;
            json_t *classes = json_object();
            for (int c = 0; c < ZERO_CLASSES; c++)
                json_object_set_new(classes, zero_class_name((zero_class)c),
                                    json_pack("{s:I, s:I}", "own_peak", s->class_peak[c],
                                              "at_peak", l->at_peak[c]));
            json_array_append_new(
                stages,
                json_pack("{s:i, s:s, s:s, s:o, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:I}",
                          "stage", stage, "first_unit", units[s->pipe.first_unit].name,
                          "last_unit", units[s->pipe.end_unit - 1].name, "classes", classes,
                          "peak_bytes", s->peak_bytes, "states", l->states,
                          "microbatches_alive", l->live, "microbatches_alive_formula",
                          zero_pipeline_live_formula(p->kind, p->n_stages, stage,
                                                     p->plan.accumulation),
                          "activation_bytes_sent", l->activations_sent,
                          "gradient_bytes_sent", l->gradients_sent, "tied_bytes_sent",
                          l->tied_sent, "reduced_bytes_sent", l->reduced_sent));
        }
        json_decref(time);
        json_decref(stages);
        if (r->request.show_schedule)
            json_object_set_new(
                whole, "program",
                zero_plan_program_facts(&p->stages[zero_plan_pipeline_stage(r)].schedule,
                                        ZERO_PROGRAM_STEP, true));
        json_array_append_new(pipelines, whole);
    }
    json_object_set_new(object, "pipelines", pipelines);
}

zero_status zero_plan_show_pipelines(const zero_plan_report *r, FILE *out)
{
    int stage = zero_plan_pipeline_stage(r);
    zero_legend legend = {.has_freed = true};
    json_t *facts = zero_plan_facts(r), *shown = json_array();
    for (int k = 0; k < ZERO_PIPELINE_KINDS && r->request.show_schedule; k++)
        json_array_append_new(
            shown, zero_plan_lines(&r->pipelines[k].pipeline.stages[stage].schedule,
                                   ZERO_PROGRAM_STEP, &legend));
    json_object_update_new(facts, json_pack("{s:i, s:o, s:o}", "of_stage", stage, "shown",
                                            shown, "legend", zero_legend_facts(&legend)));
    return zero_report_print("pipelines", facts, out);
}
