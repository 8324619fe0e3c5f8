#include "report/plan_json.h"

#include <math.h>

#include "base/fail.h"
#include "report/ablation_show.h"
#include "report/json_put.h"
#include "report/plan_batch_show.h"
#include "report/plan_file.h"
#include "report/plan_join.h"
#include "report/plan_json_setup.h"
#include "report/plan_peers.h"
#include "report/plan_pipeline.h"
#include "report/plan_program.h"
#include "report/text.h"

/* ---- a stage ---- */

static json_t *field_json(const zero_field *field, const void *of)
{
    char text[ZERO_FIELD_TEXT_BYTES];
    const void *at = (const char *)of + field->offset;
    switch (field->word ? ZERO_FIELD_TEXT : field->kind) {
    case ZERO_FIELD_FLAG: return json_boolean(*(const bool *)at);
    case ZERO_FIELD_INT: return json_integer(*(const int *)at);
    case ZERO_FIELD_WHOLE: return json_integer(*(const int64_t *)at);
    case ZERO_FIELD_REAL: return json_real(*(const double *)at);
    case ZERO_FIELD_TEXT: break;
    }
    zero_field_write(field, of, text);
    return json_string(text);
}

static json_t *input_json(const zero_plan_input *input)
{
    json_t *object = json_object();
    for (int i = 0; i < ZERO_PLAN_FIELDS; i++)
        json_object_set_new(object, zero_plan_fields[i].name,
                            field_json(&zero_plan_fields[i], input));
    return object;
}

static json_t *peak_json(const zero_plan_report *r, const zero_schedule *s)
{
    const zero_instruction *i = &s->programs[s->peak_program].code[s->peak_at];
    char text[ZERO_PLAN_TEXT];
    json_t *object = json_object();
    zero_text_instruction(&r->model, i, text);
    put_whole(object, "bytes", (int64_t)s->peak_bytes);
    put_text(object, "program", zero_program_name(s->peak_program));
    put_whole(object, "index", s->peak_at + 1);
    put_text(object, "instruction", text);
    return object;
}

static json_t *classes_json(const zero_plan_stage *stage)
{
    json_t *classes = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        json_t *one = json_object();
        put_whole(one, "own_peak", (int64_t)stage->schedule.class_peak[c]);
        put_whole(one, "at_peak", (int64_t)stage->ledger.at_peak[c]);
        if (stage->schedule.input.device)
            put_whole(one, "host_peak", (int64_t)stage->schedule.host_class_peak[c]);
        json_object_set_new(classes, zero_class_name((zero_class)c), one);
    }
    return classes;
}

/* The host's memory that a rank needs. */
static void put_needed(json_t *object, size_t arena, const zero_plan_report *r,
                       const zero_plan_stage *stage)
{
    put_whole(object, "arena", (int64_t)arena);
    put_whole(object, "window", (int64_t)stage->schedule.window_bytes);
    if (stage->schedule.n_joins > 0)
        put_whole(object, "tp_window", (int64_t)stage->schedule.tp_window_bytes);
    put_whole(object, "process_bytes", (int64_t)zero_plan_process(&stage->schedule));
    put_whole(object, "needed", (int64_t)stage->ledger.needed);
    if (r->config.memory_limit > 0)
        json_object_set_new(object, "fits_memory_limit",
                            json_boolean(zero_plan_fits_limit(r, stage)));
}

static json_t *device_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    json_t *object = json_object();
    put_whole(object, "arena", (int64_t)stage->schedule.own_bytes);
    put_whole(object, "context_bytes", (int64_t)zero_config_context(&r->config));
    put_whole(object, "needed", (int64_t)zero_plan_on_device(r, stage));
    if (r->config.device_memory > 0)
        json_object_set_new(object, "fits_device_memory",
                            json_boolean(zero_plan_fits_device(r, stage)));
    return object;
}

static json_t *host_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    json_t *object = json_object();
    put_whole(object, "peak_bytes", (int64_t)stage->schedule.host_peak_bytes);
    put_needed(object, stage->schedule.host_bytes, r, stage);
    return object;
}

static json_t *memory_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_ledger *l = &stage->ledger;
    json_t *object = json_object();
    json_object_set_new(object, "classes", classes_json(stage));
    json_object_set_new(object, "peak", peak_json(r, &stage->schedule));
    if (stage->schedule.input.device) {
        json_object_set_new(object, "device", device_json(r, stage));
        json_object_set_new(object, "host", host_json(r, stage));
    } else {
        put_needed(object, stage->schedule.own_bytes, r, stage);
    }
    put_whole(object, "states", (int64_t)l->states);
    put_real(object, "formula", l->formula);
    put_real(object, "padding", l->padding);
    return object;
}

static void put_traffic(json_t *object, const zero_traffic *t)
{
    zero_volume v = zero_traffic_total(t);
    put_whole(object, "bytes_sent", v.bytes_sent);
    put_whole(object, "bytes_received", v.bytes_received);
    put_whole(object, "bytes_sent_across", t->bytes_sent[ZERO_ACROSS]);
    put_whole(object, "bytes_received_across", t->bytes_received[ZERO_ACROSS]);
    put_whole(object, "messages_sent", v.messages_sent);
    put_whole(object, "messages_received", v.messages_received);
}

static json_t *exchange_json(const zero_plan_exchange *x)
{
    json_t *object = json_object();
    put_whole(object, "collectives", x->collectives);
    put_traffic(object, &x->traffic);
    put_real(object, "formula_bytes", x->formula);
    return object;
}

static json_t *control_json(const zero_traffic *t)
{
    json_t *object = json_object();
    put_traffic(object, t);
    return object;
}

static json_t *join_json(const zero_schedule *s, const zero_plan_ledger *l)
{
    zero_plan_blocks blocks = zero_plan_blocks_of(s);
    json_t *object = exchange_json(&l->join);
    put_real(object, "blocks_formula_bytes", blocks.ours);
    put_real(object, "blocks_paper_bytes", blocks.papers);
    return object;
}

static json_t *collect_json(const zero_schedule *s, const zero_plan_ledger *l)
{
    zero_plan_kept_parts kept = zero_plan_kept_parts_of(s);
    json_t *object = exchange_json(&l->collect);
    put_whole(object, "kept_bytes", (int64_t)kept.pieces);
    put_whole(object, "whole_bytes", (int64_t)kept.wholes);
    return object;
}

static json_t *communication_json(const zero_schedule *s, const zero_plan_ledger *l)
{
    json_t *object = json_object();
    json_object_set_new(object, "reduce", exchange_json(&l->reduce));
    if (s->shard.replicas > 1)
        json_object_set_new(object, "all_reduce", exchange_json(&l->all_reduce));
    json_object_set_new(object, "gather", exchange_json(&l->gather));
    if (s->n_joins > 0) json_object_set_new(object, "join", join_json(s, l));
    if (s->input.partition_activations)
        json_object_set_new(object, "collect", collect_json(s, l));
    json_object_set_new(object, "control", control_json(&l->control));
    json_object_set_new(object, "compare", control_json(&l->compare));
    return object;
}

/* Bytes between the host and the device in a step; logits: for each token generated. */
static json_t *copies_json(const zero_plan_ledger *l)
{
    const zero_copied_bytes *c = &l->copies;
    json_t *object = json_object();
    put_whole(object, "reduce_stored", l->reduce.traffic.bytes_stored);
    put_whole(object, "reduce_fetched", l->reduce.traffic.bytes_fetched);
    put_whole(object, "gather_stored", l->gather.traffic.bytes_stored);
    put_whole(object, "gather_fetched", l->gather.traffic.bytes_fetched);
    put_whole(object, "tokens_stored", (int64_t)c->tokens);
    put_whole(object, "losses_fetched", (int64_t)c->row_losses);
    put_whole(object, "squares_fetched", (int64_t)c->squares);
    put_whole(object, "logits_fetched", (int64_t)c->logits);
    put_whole(object, "gradients_fetched", (int64_t)c->gradients);
    put_whole(object, "parameters_stored", (int64_t)c->parameters);
    return object;
}

static json_t *moved_json(const zero_file_traffic *t)
{
    json_t *object = json_object();
    put_whole(object, "bytes_read", (int64_t)t->bytes_read);
    put_whole(object, "bytes_written", (int64_t)t->bytes_written);
    put_whole(object, "reads", (int64_t)t->reads);
    put_whole(object, "writes", (int64_t)t->writes);
    return object;
}

static json_t *file_json(const zero_plan_ledger *l)
{
    const zero_offload_traffic *t = &l->file_step;
    zero_file_traffic all = zero_offload_total(t);
    json_t *object = json_object(), *classes = json_object(), *step = json_object();
    for (int c = 0; c < ZERO_CLASSES; c++)
        put_whole(classes, zero_class_name((zero_class)c), (int64_t)l->file[c]);
    json_object_set_new(object, "classes", classes);
    put_whole(object, "bytes", (int64_t)l->file_bytes);
    put_whole(object, "page_padding", (int64_t)l->file_padding);
    json_object_set_new(step, zero_class_name(ZERO_CLASS_OPTIMIZER),
                        moved_json(&t->states));
    json_object_set_new(step, zero_class_name(ZERO_CLASS_PARAMETERS),
                        moved_json(&t->parameters));
    json_object_set_new(step, zero_class_name(ZERO_CLASS_KEPT),
                        moved_json(&t->activations));
    json_object_set_new(step, "all", moved_json(&all));
    json_object_set_new(object, "step", step);
    return object;
}

static json_t *kept_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    json_t *object = json_object(), *groups = json_array();
    for (int i = 0; i < stage->n_kept; i++)
        json_array_append_new(groups, json_string(r->model.groups[stage->kept[i]].name));
    put_whole(object, "bytes", (int64_t)stage->kept_bytes);
    json_object_set_new(object, "groups", groups);
    return object;
}

static json_t *range_json(const zero_plan_bounds *range)
{
    json_t *object = json_object();
    put_whole(object, "least", range->least);
    put_whole(object, "most", range->most);
    return object;
}

static json_t *partitions_json(const zero_plan_stage *stage)
{
    json_t *object = json_object();
    for (int k = 0; k < ZERO_PARTITION_SCHEMES; k++) {
        const zero_plan_spread *spread = &stage->spread[k];
        if (spread->n_ranks == 0) continue;
        json_t *one = json_object();
        put_whole(one, "ranks_looked_at", spread->n_ranks);
        json_object_set_new(one, "needed", range_json(&spread->needed));
        json_object_set_new(one, "bytes_sent", range_json(&spread->sent));
        json_object_set_new(one, "bytes_received", range_json(&spread->received));
        json_object_set_new(object, zero_partition_scheme_name((zero_partition_scheme)k),
                            one);
    }
    return object;
}

static json_t *price_json(const zero_plan_stage *stage)
{
    const zero_plan_price *p = &stage->price;
    json_t *object = json_object();
    if (!p->is_possible) {
        put_text(object, "not_possible", p->why_not);
        return object;
    }
    put_whole(object, "needed",
              (int64_t)zero_plan_scarce(&stage->schedule.input, &p->ledger));
    json_object_set_new(object, "communication",
                        communication_json(&stage->schedule, &p->ledger));
    return object;
}

json_t *zero_plan_time_json(const zero_plan_report *r, const zero_plan_time *t)
{
    json_t *object = json_object();
    put_real(object, "step_seconds", t->step);
    put_real(object, "compute_seconds", t->compute);
    put_real(object, "communication_seconds", t->communication);
    put_real(object, "exposed_seconds", t->exposed);
    if (zero_tp_ranks(&r->config.tp) > 1) {
        put_real(object, "join_seconds", t->joins);
        put_real(object, "join_exposed_seconds", t->join_exposed);
    }
    if (r->config.partition_activations) {
        put_real(object, "collect_seconds", t->collects);
        put_real(object, "collect_exposed_seconds", t->collect_exposed);
    }
    put_real(object, "tokens_per_second",
             (double)(r->config.global_batch * r->shape.seq) / t->step);
    return object;
}

static json_t *disk_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_time *t = &stage->time;
    zero_plan_disk d = zero_plan_disk_of(r, stage);
    json_t *object = json_object();
    put_real(object, "seconds", t->disk);
    put_real(object, "exposed_seconds", t->disk_exposed);
    put_real(object, "first_exposed_seconds", t->disk_first);
    put_real(object, "resident_step_seconds", stage->resident.step);
    put_real(object, "efficiency", d.efficiency);
    put_whole(object, "ranks_sharing_it", d.sharers);
    put_real(object, "tokens_hiding_all", d.hides_all);
    put_real(object, "tokens_hiding_reads", d.hides_reads);
    if (!isinf(d.hidden)) put_real(object, "tokens_hidden", d.hidden);
    put_real(object, "bytes_written_per_day", d.daily);
    return object;
}

static json_t *fitted_json(const zero_plan_fitted *f)
{
    json_t *object = json_object();
    put_whole(object, "layers", f->layers);
    put_whole(object, "parameters", f->n_params);
    put_whole(object, "needed", (int64_t)f->needed);
    if (f->host > 0) put_whole(object, "host", (int64_t)f->host);
    if (f->file > 0) put_whole(object, "file", (int64_t)f->file);
    return object;
}

static json_t *program_json(const zero_plan_report *r, const zero_schedule *s,
                            zero_program_kind kind)
{
    json_t *program = json_array();
    for (int at = 0; at < s->programs[kind].length; at++) {
        const zero_instruction *i = &s->programs[kind].code[at];
        json_t *one = json_object();
        put_text(one, "op", zero_op_name(i->op));
        put_text(one, "operand", zero_text_operand(&r->model, i));
        if (i->part != ZERO_PART_ALL) put_whole(one, "part", i->part);
        if (zero_ops[i->op].has_microbatch) put_whole(one, "microbatch", i->microbatch);
        int64_t bytes = zero_plan_instruction_bytes(s, i);
        if (bytes >= 0) put_whole(one, "bytes", bytes);
        put_whole(one, "live_bytes", (int64_t)i->live_bytes);
        if (i->host != ZERO_NO_BUFFER)
            put_whole(one, "host_bytes", (int64_t)s->buffers[i->host].bytes);
        json_array_append_new(program, one);
    }
    return program;
}

static json_t *programs_json(const zero_plan_report *r, const zero_schedule *s)
{
    json_t *object = json_object();
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        json_object_set_new(object, zero_program_name((zero_program_kind)p),
                            program_json(r, s, (zero_program_kind)p));
    return object;
}

static json_t *stage_json(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_request *o = &r->request;
    json_t *object = json_object();
    put_whole(object, "stage", zero_plan_stage_number(stage));
    json_object_set_new(object, "input", input_json(&stage->schedule.input));
    json_object_set_new(object, "memory", memory_json(r, stage));
    json_object_set_new(object, "communication",
                        communication_json(&stage->schedule, &stage->ledger));
    if (zero_plan_uses_file(&stage->schedule.input))
        json_object_set_new(object, "file", file_json(&stage->ledger));
    if (stage->schedule.input.device)
        json_object_set_new(object, "copies", copies_json(&stage->ledger));
    json_object_set_new(object, "kept", kept_json(r, stage));
    json_object_set_new(object, "partitions", partitions_json(stage));
    if (r->config.accumulation > 1)
        json_object_set_new(
            object, r->config.reproducible ? "without_reproducible" : "with_reproducible",
            price_json(stage));
    if (o->has_time)
        json_object_set_new(object, "time", zero_plan_time_json(r, &stage->time));
    if (o->has_disk) json_object_set_new(object, "disk", disk_json(r, stage));
    if (o->fit > 0) json_object_set_new(object, "fits", fitted_json(&stage->fitted));
    if (o->ablation)
        json_object_set_new(object, "ablation", zero_plan_ablation_json(&stage->ablation));
    if (stage->batch.micro_batch > 0)
        json_object_set_new(object, "fits_batch", zero_plan_batch_json(r, stage));
    if (o->peers) json_object_set_new(object, "peers", zero_plan_peers_json(r, stage));
    if (o->show_schedule)
        json_object_set_new(object, "programs", programs_json(r, &stage->schedule));
    return object;
}

zero_status zero_plan_show_json(const zero_plan_report *r, FILE *out)
{
    json_t *object = json_object(), *stages = json_array();
    zero_plan_put_setup(r, object);
    for (int k = 0; k < r->n; k++)
        json_array_append_new(stages, stage_json(r, &r->stages[k]));
    json_object_set_new(object, "stages", stages);
    if (r->request.pipeline > 0) zero_plan_put_pipelines(r, object);
    return zero_json_print(object, JSON_INDENT(2), out);
}
