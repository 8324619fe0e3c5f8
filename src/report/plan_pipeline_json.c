/* Pipelines as JSON. */
#include "report/json_put.h"
#include "report/plan_pipeline.h"
#include "sharding/instruction_text.h"
#include "sharding/schedule_exchange.h"

static json_t *classes_json(const zero_pipe_stage *s)
{
    json_t *classes = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        json_t *one = json_object();
        put_whole(one, "own_peak", (int64_t)s->schedule.class_peak[c]);
        put_whole(one, "at_peak", (int64_t)s->ledger.at_peak[c]);
        json_object_set_new(classes, zero_class_name((zero_class)c), one);
    }
    return classes;
}

static json_t *program_json(const zero_schedule *s)
{
    json_t *list = json_array();
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        zero_traffic t = zero_instruction_traffic(s, i);
        json_t *one = json_object();
        put_text(one, "op", zero_op_name(i->op));
        put_text(one, "operand", zero_text_operand(s->input.model, i));
        if (zero_ops[i->op].has_microbatch) put_whole(one, "microbatch", i->microbatch);
        put_whole(one, "bytes_sent", zero_traffic_total(&t).bytes_sent);
        put_whole(one, "live_bytes", (int64_t)i->live_bytes);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *stage_json(const zero_pipeline *p, int stage)
{
    const zero_pipe_stage *s = &p->stages[stage];
    const zero_pipe_ledger *l = &s->ledger;
    json_t *object = json_object();
    put_whole(object, "stage", stage);
    put_text(object, "first_unit", p->plan.model->units[s->schedule.pipe.first_unit].name);
    put_text(object, "last_unit", p->plan.model->units[s->schedule.pipe.end_unit - 1].name);
    json_object_set_new(object, "classes", classes_json(s));
    put_whole(object, "peak_bytes", (int64_t)s->schedule.peak_bytes);
    put_whole(object, "states", (int64_t)l->states);
    put_whole(object, "microbatches_alive", l->live);
    put_whole(
        object, "microbatches_alive_formula",
        zero_pipeline_live_formula(p->kind, p->n_stages, stage, p->plan.accumulation));
    put_whole(object, "activation_bytes_sent", l->activations_sent);
    put_whole(object, "gradient_bytes_sent", l->gradients_sent);
    put_whole(object, "tied_bytes_sent", l->tied_sent);
    put_whole(object, "reduced_bytes_sent", l->reduced_sent);
    return object;
}

static json_t *time_json(const zero_plan_report *r, const zero_pipeline_time *t)
{
    json_t *object = json_object();
    put_real(object, "step_seconds", t->step);
    put_real(object, "passes_seconds", t->passes);
    put_real(object, "compute_seconds", t->compute);
    put_real(object, "idle", t->idle);
    put_real(object, "tokens_per_second",
             (double)(r->config.global_batch * r->shape.seq) / t->step);
    return object;
}

static json_t *pipeline_json(const zero_plan_report *r, const zero_plan_pipeline *of)
{
    const zero_pipeline *p = &of->pipeline;
    json_t *object = json_object(), *stages = json_array();
    put_text(object, "schedule", zero_pipeline_name(p->kind));
    put_whole(object, "stages", p->n_stages);
    put_whole(object, "replicas", p->plan.n_ranks);
    put_whole(object, "microbatches", p->plan.accumulation);
    put_real(object, "bubble", of->bubble);
    put_real(object, "bubble_formula",
             zero_pipeline_bubble_formula(p->n_stages, p->plan.accumulation));
    if (r->request.has_time) json_object_set_new(object, "time", time_json(r, &of->time));
    for (int s = 0; s < p->n_stages; s++) json_array_append_new(stages, stage_json(p, s));
    json_object_set_new(object, "ranks", stages);
    if (r->request.show_schedule)
        json_object_set_new(object, "program",
                            program_json(&p->stages[zero_plan_pipeline_stage(r)].schedule));
    return object;
}

void zero_plan_put_pipelines(const zero_plan_report *r, json_t *object)
{
    json_t *pipelines = json_array();
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++)
        json_array_append_new(pipelines, pipeline_json(r, &r->pipelines[k]));
    json_object_set_new(object, "pipelines", pipelines);
}
