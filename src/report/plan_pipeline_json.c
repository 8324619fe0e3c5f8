/* Pipelines as JSON. */
#include "report/json_put.h"
#include "report/plan_pipeline.h"
#include "sharding/instruction_text.h"
#include "sharding/schedule_exchange.h"

static json_t *stage_json(const zero_pipeline *p, int stage)
{
    const zero_schedule *s = &p->stages[stage].schedule;
    const zero_pipe_ledger *l = &p->stages[stage].ledger;
    const zero_unit *units = p->plan.model->units;
    json_t *classes = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++)
        json_object_set_new(classes, zero_class_name((zero_class)c),
                            json_pack("{s:I, s:I}", "own_peak",
                                      (json_int_t)s->class_peak[c], "at_peak",
                                      (json_int_t)l->at_peak[c]));
    return json_pack(
        "{s:i, s:s, s:s, s:o, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:I}", "stage", stage,
        "first_unit", units[s->pipe.first_unit].name, "last_unit",
        units[s->pipe.end_unit - 1].name, "classes", classes, "peak_bytes",
        (json_int_t)s->peak_bytes, "states", (json_int_t)l->states, "microbatches_alive",
        l->live, "microbatches_alive_formula",
        zero_pipeline_live_formula(p->kind, p->n_stages, stage, p->plan.accumulation),
        "activation_bytes_sent", (json_int_t)l->activations_sent, "gradient_bytes_sent",
        (json_int_t)l->gradients_sent, "tied_bytes_sent", (json_int_t)l->tied_sent,
        "reduced_bytes_sent", (json_int_t)l->reduced_sent);
}

static json_t *program_json(const zero_schedule *s)
{
    json_t *list = json_array();
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        zero_traffic t = zero_instruction_traffic(s, i);
        json_t *one = json_pack("{s:s, s:s}", "op", zero_op_name(i->op), "operand",
                                zero_text_operand(s->input.model, i));
        if (zero_ops[i->op].has_microbatch) put_whole(one, "microbatch", i->microbatch);
        put_whole(one, "bytes_sent", zero_traffic_total(&t).bytes_sent);
        put_whole(one, "live_bytes", (int64_t)i->live_bytes);
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *pipeline_json(const zero_plan_report *r, const zero_plan_pipeline *of)
{
    const zero_pipeline *p = &of->pipeline;
    const zero_pipeline_time *t = &of->time;
    json_t *stages = json_array(),
           *object = json_pack(
               "{s:s, s:i, s:i, s:i, s:f, s:f}", "schedule", zero_pipeline_name(p->kind),
               "stages", p->n_stages, "replicas", p->plan.n_ranks, "microbatches",
               p->plan.accumulation, "bubble", of->bubble, "bubble_formula",
               zero_pipeline_bubble_formula(p->n_stages, p->plan.accumulation));
    if (r->request.has_time)
        json_object_set_new(
            object, "time",
            json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_seconds", t->step,
                      "passes_seconds", t->passes, "compute_seconds", t->compute, "idle",
                      t->idle, "tokens_per_second",
                      (double)(r->config.global_batch * r->shape.seq) / t->step));
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
