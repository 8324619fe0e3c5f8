#include "report/plan_facts.h"

#include "report/json_put.h"
#include "sharding/formula.h"
#include "sharding/instruction_text.h"
#include "sharding/schedule_exchange.h"
#include "sharding/stages.h"
#include "train/metrics.h"

/* ---- memory ---- */

/* The scratch file: what lies there, and what a step moves. */
static json_t *file_facts(const zero_plan_ledger *l)
{
    zero_file_traffic all = zero_offload_total(&l->file_step);
    json_t *classes = json_object(), *step = zero_metrics_offload(&l->file_step);
    for (int c = 0; c < ZERO_CLASSES; c++)
        zero_put_whole(classes, zero_class_name((zero_class)c), (int64_t)l->file[c]);
    json_object_set_new(step, "all", zero_metrics_moved(&all));
    return json_pack("{s:o, s:I, s:I, s:o}", "classes", classes, "bytes", l->file_bytes,
                     "page_padding", l->file_padding, "step", step);
}

/* What a rank needs: `limit` and `device_limit` are of its memory and its device's; 0:
 * none. */
static json_t *memory_facts(const zero_schedule *s, const zero_plan_ledger *l,
                            size_t context, size_t limit, size_t device_limit)
{
    const bool has_device = s->input.device;
    const size_t needed = l->device_needed + context;
    const zero_program *p = &s->programs[s->peak_program];
    char text[ZERO_PLAN_TEXT];
    zero_text_instruction(s->input.model, &p->code[s->peak_at], text);
    json_t *classes = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        json_t *one =
            json_pack("{s:I, s:I}", "own_peak", s->class_peak[c], "at_peak", l->at_peak[c]);
        if (s->input.device)
            zero_put_whole(one, "host_peak", (int64_t)s->host_class_peak[c]);
        if (l->file_bytes > 0) zero_put_whole(one, "in_file", (int64_t)l->file[c]);
        json_object_set_new(classes, zero_class_name((zero_class)c), one);
    }
    json_t *object =
        json_pack("{s:o, s:o, s:I, s:f, s:f}", "classes", classes, "peak",
                  json_pack("{s:I, s:s, s:i, s:i, s:s}", "bytes", s->peak_bytes, "program",
                            zero_program_name(s->peak_program), "index", s->peak_at + 1,
                            "of", p->length, "instruction", text),
                  "states", l->states, "formula", l->formula, "padding", l->padding);
    json_t *host = json_pack(
        "{s:o*, s:I, s:I, s:o*, s:I, s:I, s:o*}", "peak_bytes",
        has_device ? json_integer((int64_t)s->host_peak_bytes) : NULL, "arena",
        has_device ? s->host_bytes : s->own_bytes, "window", s->window_bytes, "tp_window",
        s->n_joins > 0 ? json_integer((int64_t)s->tp_window_bytes) : NULL, "process_bytes",
        zero_plan_process(s), "needed", l->needed, "fits_memory_limit",
        limit > 0 ? json_boolean(l->needed <= limit) : NULL);
    json_object_update_new(
        object,
        has_device
            ? json_pack("{s:{s:I, s:I, s:I, s:o*}, s:o}", "device", "arena", s->own_bytes,
                        "context_bytes", context, "needed", needed, "fits_device_memory",
                        device_limit > 0 ? json_boolean(needed <= device_limit) : NULL,
                        "host", host)
            : host);
    return object;
}

/* ---- communication ---- */

static json_t *traffic_facts(const zero_traffic *t)
{
    zero_volume v = zero_traffic_total(t);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "bytes_sent", v.bytes_sent,
                     "bytes_received", v.bytes_received, "bytes_sent_across",
                     t->bytes_sent[ZERO_ACROSS], "bytes_received_across",
                     t->bytes_received[ZERO_ACROSS], "messages_sent", v.messages_sent,
                     "messages_received", v.messages_received);
}

static json_t *exchange_facts(const zero_plan_exchange *x)
{
    json_t *object = json_pack("{s:I}", "collectives", x->collectives);
    json_object_update_new(object, traffic_facts(&x->traffic));
    zero_put_real(object, "formula_bytes", x->formula);
    return object;
}

/* Beside them the bytes that a rank sends for the blocks per step, if JOINs go by messages,
 * and elements of b s h (T-1)/T for each block and microbatch: ours and the paper's. A sum
 * counts twice: 10 elements are 5 sums. JOINs carry fp32. */
static json_t *join_facts(const zero_schedule *s, const zero_plan_ledger *l)
{
    const zero_plan_input *in = &s->input;
    const zero_shape *shape = in->model->units->shape;
    const int sums = zero_formula_tp_sums(in->recompute),
              papers = zero_formula_tp_sums_of_paper(in->recompute);
    int64_t elements = in->micro_batch * in->seq * shape->hidden;
    double times = (double)shape->layers * in->accumulation * (double)sizeof(float);
    int T = in->model->share.ranks;
    json_t *object = exchange_facts(&l->join);
    zero_put_real(object, "blocks_formula_bytes",
                  times * zero_formula_tp_volume(elements, sums, T));
    zero_put_real(object, "blocks_paper_bytes",
                  times * zero_formula_tp_volume(elements, papers, T));
    zero_put_whole(object, "blocks_elements", 2 * sums);
    zero_put_whole(object, "blocks_paper_elements", 2 * papers);
    return object;
}

/* P_a: the pieces that wait for their backward pass, and what makes them whole again. */
static json_t *collect_facts(const zero_schedule *s, const zero_plan_ledger *l)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    const int ranks = s->input.model->share.ranks;
    int64_t pieces = 0;
    double added = 0.0; /* if they go by messages */
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        if (i->op != ZERO_OP_KEEP) continue;
        int64_t piece = zero_range_len(i->range) * (int64_t)sizeof(float);
        if (i->microbatch == 0) pieces += piece;
        added += zero_formula_exchanged(piece * ranks, ranks);
    }
    json_t *object = exchange_facts(&l->collect);
    zero_put_whole(object, "kept_bytes", pieces);
    zero_put_whole(object, "whole_bytes", pieces * ranks);
    zero_put_real(object, "by_messages_bytes", added);
    zero_put_flag(object, "kept_in_file", s->input.offload_activations);
    return object;
}

/* Bytes by content of the messages. */
static json_t *send_facts(const zero_schedule *s, const zero_plan_ledger *l)
{
    static const char *const names[ZERO_PIPE_CONTENTS] = {
        [ZERO_PIPE_OUTPUT] = "output_bytes",
        [ZERO_PIPE_GRADIENT] = "gradient_bytes",
        [ZERO_PIPE_FIRST] = "first_gradient_bytes",
        [ZERO_PIPE_PARAMETERS] = "parameter_bytes"};
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int64_t sent[ZERO_PIPE_CONTENTS] = {0};
    json_t *object = exchange_facts(&l->send);
    for (int at = 0; at < p->length; at++) {
        if (p->code[at].op != ZERO_OP_SEND) continue;
        zero_traffic t = zero_instruction_traffic(s, &p->code[at]);
        sent[s->messages[p->code[at].join].content] += zero_traffic_sent(&t);
    }
    for (int k = 0; k < ZERO_PIPE_CONTENTS; k++) zero_put_whole(object, names[k], sent[k]);
    return object;
}

json_t *zero_plan_communication_facts(const zero_schedule *s, const zero_plan_ledger *l)
{
    zero_plan_exchange sum = zero_plan_data_of(l);
    json_t *compare = traffic_facts(&l->compare);
    zero_put_flag(compare, "used", zero_is_compared(s));
    return json_pack("{s:o, s:o*, s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o, s:o}", "reduce",
                     exchange_facts(&l->reduce), "all_reduce",
                     s->shard.replicas > 1 ? exchange_facts(&l->all_reduce) : NULL,
                     "gather", exchange_facts(&l->gather), "sum", exchange_facts(&sum),
                     "join", s->n_joins > 0 ? join_facts(s, l) : NULL, "collect",
                     s->input.partition_activations ? collect_facts(s, l) : NULL, "send",
                     s->n_messages > 0 ? send_facts(s, l) : NULL, "receive",
                     s->n_messages > 0 ? exchange_facts(&l->receive) : NULL, "control",
                     traffic_facts(&l->control), "compare", compare);
}

json_t *zero_plan_time_facts(const zero_plan_report *r, const zero_plan_time *t)
{
    json_t *object = json_pack("{s:f, s:f, s:f, s:f}", "step_seconds", t->step,
                               "compute_seconds", t->compute, "communication_seconds",
                               t->communication, "exposed_seconds", t->exposed);
    if (zero_tp_ranks(&r->config.tp) > 1) {
        zero_put_real(object, "join_seconds", t->joins);
        zero_put_real(object, "join_exposed_seconds", t->join_exposed);
    }
    if (r->config.plan.partition_activations) {
        zero_put_real(object, "collect_seconds", t->collects);
        zero_put_real(object, "collect_exposed_seconds", t->collect_exposed);
    }
    if (zero_plan_stages(&r->config.plan) > 1) zero_put_real(object, "idle", t->idle);
    zero_put_real(object, "tokens_per_second",
                  (double)(r->config.global_batch * r->shape.seq) / t->step);
    return object;
}

/* ---- a stage ---- */

static json_t *program_facts(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    json_t *program = json_array();
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        int64_t bytes = zero_plan_instruction_bytes(s, i);
        json_t *one = json_pack("{s:s, s:s}", "op", zero_op_name(i->op), "operand",
                                zero_text_operand(s->input.model, i));
        if (i->part != ZERO_PART_ALL) zero_put_whole(one, "part", i->part);
        if (zero_ops[i->op].has_microbatch)
            zero_put_whole(one, "microbatch", i->microbatch);
        if (bytes >= 0) zero_put_whole(one, "bytes", bytes);
        zero_put_whole(one, "live_bytes", (int64_t)i->live_bytes);
        if (i->host != ZERO_NO_BUFFER)
            zero_put_whole(one, "host_bytes", (int64_t)s->buffers[i->host].bytes);
        json_array_append_new(program, one);
    }
    return program;
}

static json_t *stage_facts(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_schedule *s = &stage->schedule;
    const zero_plan_ledger *l = &stage->ledger;
    bool is_sharded = zero_stage_at(s->input.stage)->parameters == ZERO_HOLD_PIECE;
    /* Bytes between the host and the device in a step; logits: for each token generated. */
    const zero_copied_bytes *c = &l->copies;
    const zero_traffic *reduce = &l->reduce.traffic, *gather = &l->gather.traffic;
    json_t *fields = json_object();
    for (int i = 0; i < ZERO_PLAN_FIELDS; i++) {
        const zero_field *field = &zero_plan_fields[i];
        const void *at = (const char *)&s->input + field->offset;
        char word[ZERO_FIELD_TEXT_BYTES];
        json_t *value = NULL;
        switch (field->word ? ZERO_FIELD_TEXT : field->kind) {
        case ZERO_FIELD_FLAG: value = json_boolean(*(const bool *)at); break;
        case ZERO_FIELD_INT: value = json_integer(*(const int *)at); break;
        case ZERO_FIELD_WHOLE: value = json_integer(*(const int64_t *)at); break;
        case ZERO_FIELD_REAL: value = json_real(*(const double *)at); break;
        case ZERO_FIELD_FLOAT:
        case ZERO_FIELD_CHARS:
        case ZERO_FIELD_TEXT:
            zero_field_write(field, &s->input, word);
            value = json_string(word);
        }
        json_object_set_new(fields, field->name, value);
    }
    json_t *object = json_pack(
        "{s:i, s:o, s:o, s:o, s:o*, s:o*, s:b, s:b}", "stage", s->input.stage, "input",
        fields, "memory",
        memory_facts(s, l, zero_config_context(&r->config),
                     (size_t)zero_max(r->config.memory_limit, 0),
                     (size_t)r->config.device_memory),
        "communication", zero_plan_communication_facts(s, l), "file",
        zero_plan_uses_file(&s->input) ? file_facts(l) : NULL, "copies",
        s->input.device
            ? json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}",
                        "reduce_stored", reduce->bytes_stored, "reduce_fetched",
                        reduce->bytes_fetched, "gather_stored", gather->bytes_stored,
                        "gather_fetched", gather->bytes_fetched, "tokens_stored", c->tokens,
                        "losses_fetched", c->row_losses, "squares_fetched", c->squares,
                        "logits_fetched", c->logits, "gradients_fetched", c->gradients,
                        "parameters_stored", c->parameters, "updates_beside",
                        zero_plan_updates_beside(&s->input))
            : NULL,
        "shards_parameters", is_sharded, "parameters_once_per_node",
        zero_schedule_shares(s));
    json_object_update(object, stage->facts);
    json_t *programs = json_object();
    for (int p = 0; p < ZERO_PROGRAMS && r->request.show_schedule; p++)
        json_object_set_new(programs, zero_program_name((zero_program_kind)p),
                            program_facts(s, (zero_program_kind)p));
    if (r->request.show_schedule) json_object_set(object, "programs", programs);
    json_decref(programs);
    return object;
}

/* The pipelines beside all stages, with all of a plan's facts for each of their stages. */
static json_t *pipelines_facts(const zero_plan_report *r)
{
    const double tokens = (double)(r->config.global_batch * r->shape.seq);
    json_t *pipelines = json_array();
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_plan_pipeline *of = &r->pipelines[k];
        const zero_pipeline *p = &of->pipeline;
        const zero_pipeline_time *t = &of->time;
        json_t *ranks = json_array(),
               *one = json_pack("{s:s, s:i, s:i, s:i, s:f, s:o}", "schedule",
                                zero_pipeline_name(p->plan.pp_schedule), "stages",
                                p->n_stages, "replicas", p->plan.n_ranks, "microbatches",
                                p->plan.accumulation, "bubble", of->bubble, "ranks", ranks);
        if (r->request.has_time)
            json_object_set_new(one, "time",
                                json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_seconds",
                                          t->step, "passes_seconds", t->passes,
                                          "compute_seconds", t->compute, "idle", t->idle,
                                          "tokens_per_second", tokens / t->step));
        for (int s = 0; s < p->n_stages; s++) {
            const zero_pipe_stage *stage = &p->stages[s];
            json_t *facts = zero_plan_pipe_facts(&stage->schedule);
            json_object_set_new(facts, "memory",
                                memory_facts(&stage->schedule, &stage->ledger, 0, 0, 0));
            json_object_set_new(
                facts, "communication",
                zero_plan_communication_facts(&stage->schedule, &stage->ledger));
            json_array_append_new(ranks, facts);
        }
        json_array_append_new(pipelines, one);
    }
    return pipelines;
}

json_t *zero_plan_facts(const zero_plan_report *r)
{
    json_t *object = zero_plan_setup_facts(r), *stages = json_array();
    for (int k = 0; k < r->n; k++)
        json_array_append_new(stages, stage_facts(r, &r->stages[k]));
    json_object_set_new(object, "stages", stages);
    if (r->pipelines[0].pipeline.n_stages > 0)
        json_object_set_new(object, "pipelines", pipelines_facts(r));
    return object;
}

zero_status zero_plan_show_memory(const zero_schedule *s, const zero_plan_ledger *l,
                                  size_t context, FILE *out)
{
    json_t *memory = memory_facts(s, l, context, 0, 0);
    json_t *file = l->file_bytes > 0 ? file_facts(l) : NULL;
    return zero_report_print("memory",
                             json_pack("{s:o, s:o*}", "memory", memory, "file", file), out);
}
