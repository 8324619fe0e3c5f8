/* A stage of a plan, and what is asked for beside it, which the tree has as it is made. */

#include "report/json_put.h"
#include "report/plan_facts.h"
#include "sharding/compile.h"
#include "sharding/stages.h"

#define ALL_RANKS 4 /* of more ranks only a few are planned */

/* A scheme of partition over all ranks, or a few of many: all pieces are equal but those of
 * the last ranks; so are all nodes. Nothing where an option needs the other scheme. */
static bool needs_owners(const zero_plan_input *in)
{
    bool is_cut = in->stage > 0 && in->n_ranks > 1;
    return is_cut && zero_rule_at(in->optimizer)->moves_matrices;
}

/* The products of updates that move whole matrices. */
static void put_update(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_schedule *s = &stage->schedule;
    double most, all;
    zero_work_of_updates(s, &most, &all);
    if (all == 0.0) return;
    json_t *facts = json_pack("{s:f, s:f}", "flops", all, "most_flops", most);
    if (r->request.has_time)
        zero_put_real(facts, "seconds", most / r->request.machine.flops);
    json_object_set_new(stage->facts, "update", facts);
}

static zero_status put_partition(const zero_plan_report *r, zero_plan_input in,
                                 zero_partition_scheme scheme, json_t *partitions)
{
    static const char *const names[] = {"needed", "bytes_sent", "bytes_received"};
    enum { VALUES = ZERO_COUNT(names) };
    int n = in.n_ranks, planned = n <= ALL_RANKS ? n : 3;
    const int few[] = {0, n / 2, n - 1};
    int64_t least[VALUES], most[VALUES];
    bool needs_slices =
        in.shard_ranks < n || in.node_parameters || zero_plan_stages(&in) > 1;
    in.partition = scheme;
    if (scheme == ZERO_PARTITION_OWNER && needs_slices) return ZERO_OK;
    if (scheme == ZERO_PARTITION_SLICE && needs_owners(&in)) return ZERO_OK;
    in.bucket = zero_config_bucket(&r->config, &in);
    for (int k = 0; k < planned; k++) {
        zero_plan_ledger l;
        in.rank = n <= ALL_RANKS ? k : few[k];
        ZERO_TRY(zero_plan_measure(&in, &l));
        zero_plan_exchange sum = zero_plan_data_of(&l);
        zero_volume moved = zero_traffic_total(&sum.traffic);
        const int64_t values[VALUES] = {(int64_t)zero_plan_scarce(&in, &l),
                                        moved.bytes_sent, moved.bytes_received};
        for (int v = 0; v < VALUES; v++) {
            least[v] = k == 0 ? values[v] : zero_min(least[v], values[v]);
            most[v] = k == 0 ? values[v] : zero_max(most[v], values[v]);
        }
    }
    json_t *facts = json_pack("{s:i}", "ranks_looked_at", planned);
    for (int v = 0; v < VALUES; v++)
        json_object_set_new(facts, names[v],
                            json_pack("{s:I, s:I}", "least", least[v], "most", most[v]));
    json_object_set_new(partitions, zero_partition_scheme_name(scheme), facts);
    return ZERO_OK;
}

/* The same step with --reproducible toggled. */
static zero_status put_price(zero_plan_input in, const zero_plan_stage *stage)
{
    zero_plan_ledger l;
    const char *key = in.reproducible ? "without_reproducible" : "with_reproducible";
    in.reproducible = !in.reproducible;
    zero_status st = zero_plan_measure(&in, &l);
    if (st == ZERO_ERR_INVALID) {
        json_object_set_new(stage->facts, key,
                            json_pack("{s:s}", "not_possible", zero_last_error()));
        return ZERO_OK;
    }
    ZERO_TRY(st);
    zero_plan_exchange now = zero_plan_data_of(&stage->ledger),
                       then = zero_plan_data_of(&l);
    int64_t needed = (int64_t)zero_plan_scarce(&in, &l),
            before = (int64_t)zero_plan_scarce(&in, &stage->ledger);
    json_object_set_new(
        stage->facts, key,
        json_pack("{s:I, s:I, s:I, s:o}", "needed", needed, "needed_more", needed - before,
                  "bytes_sent_more",
                  zero_traffic_sent(&then.traffic) - zero_traffic_sent(&now.traffic),
                  "communication", zero_plan_communication_facts(&stage->schedule, &l)));
    return ZERO_OK;
}

/* Whether a step hides its transfers: beside the same step without offload. It computes 6
 * Psi flops for each token and moves 24 Psi bytes (fp32: 16 Psi); a forward pass is a third
 * of the work and must hide half of the bytes. The nodes share both, so neither Psi nor the
 * number of nodes matters. */
static zero_status put_disk(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_plan_machine *m = &r->request.machine;
    const zero_plan_time *t = &stage->time;
    const zero_schedule *s = &stage->schedule;
    const double bytes = s->input.type == ZERO_FP32 ? 16.0 : 24.0;
    const double tokens = (double)(r->config.global_batch * r->shape.seq);
    zero_plan_input in = s->input;
    ZERO_AT_END(zero_schedule_destroy) zero_schedule without = {0};
    zero_plan_time resident;
    double times;
    in.offload = ZERO_OFFLOAD_OFF;
    in.offload_host = 0;
    in.offload_parameters = in.offload_activations = 0;
    ZERO_TRY(zero_schedule_compile(&without, &in));
    ZERO_TRY(zero_plan_time_step(&without, m, &resident));
    ZERO_TRY(zero_plan_time_hidden(s, &without, m, ZERO_PLAN_HIDDEN, &times));
    int sharers = zero_layout_local_size(zero_schedule_data_layout(s), s->input.rank);
    zero_file_traffic all = zero_offload_total(&stage->ledger.file_step);
    double flops = m->flops * sharers;
    double mixed = 2.0 / (1.0 / m->disk_read + 1.0 / m->disk_write);
    json_object_set_new(
        stage->facts, "disk",
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:f, s:o*, s:f}", "seconds", t->disk,
                  "exposed_seconds", t->disk_exposed, "first_exposed_seconds",
                  t->disk_first, "resident_step_seconds", resident.step, "efficiency",
                  resident.step / t->step, "ranks_sharing_it", sharers, "tokens_hiding_all",
                  bytes / 6.0 * flops / mixed, "tokens_hiding_reads",
                  bytes / 4.0 * flops / m->disk_read, "tokens_hidden",
                  json_real(tokens * times), /* not finite: no number does */
                  "bytes_written_per_day",
                  86400.0 / t->step * sharers * (double)all.bytes_written));
    return ZERO_OK;
}

/* A checkpoint is written beside a step that computes, while the disk is idle, or, from a
 * device, between steps. The nodes share it. */
static void put_saves(const zero_plan_report *r, const zero_plan_stage *stage)
{
    const zero_schedule *s = &stage->schedule;
    const zero_plan_time *t = &stage->time;
    const int64_t numbers = /* masters and the optimizer's states */
        r->model.n_params + zero_rule_total(s->input.optimizer, &r->model);
    double bytes = 4.0 * (double)numbers;
    double seconds =
        bytes / zero_schedule_data_layout(s)->n_nodes / r->request.machine.disk_write;
    bool is_beside = !s->input.device || zero_plan_updates_beside(&s->input);
    json_object_set_new(
        stage->facts, "saves",
        json_pack("{s:f, s:f, s:f}", "bytes", bytes, "seconds", seconds, "exposed_seconds",
                  is_beside ? fmax(seconds - (t->step - t->disk), 0.0) : seconds));
}

static zero_status put_ablation(const zero_plan_stage *stage)
{
    zero_ablation a;
    json_t *without = json_array();
    ZERO_TRY(zero_plan_ablate(&stage->schedule, &a));
    for (int p = 0; p < ZERO_ABLATIONS; p++) {
        const zero_ablation_line *line = &a.of[p];
        json_t *one = json_pack("{s:s, s:b}", "part", zero_ablation_name((zero_ablated)p),
                                "used", line->is_used);
        if (line->is_used && !line->is_possible)
            zero_put_string(one, "not_possible", line->why_not);
        if (line->is_used && line->is_possible)
            zero_put_members(one, "{s:s, s:I, s:I, s:b}", "instead", line->instead,
                             "needed", line->needed, "more",
                             (int64_t)line->needed - (int64_t)a.needed, "by_formula",
                             line->by_formula);
        json_array_append_new(without, one);
    }
    json_object_set_new(stage->facts, "ablation",
                        json_pack("{s:I, s:I, s:I, s:b, s:o}", "needed", a.needed,
                                  "laid_out", a.arena, "alive", a.alive, "has_windows",
                                  a.arena > stage->schedule.own_bytes, "without", without));
    return ZERO_OK;
}

/* With a device --fit counts its memory, and --memory-limit the host's. */
size_t zero_plan_host_room(const zero_plan_report *r)
{
    bool is_given = zero_config_has_device(&r->config) && r->config.memory_limit > 0;
    return is_given ? (size_t)r->config.memory_limit : 0;
}

/* The run with the stage's largest micro batch; if none fits, both batches are 0. */
static zero_status put_batch(const zero_plan_report *r, zero_plan_input in,
                             const zero_plan_room *room, zero_plan_stage *stage)
{
    zero_plan_batch *b = &stage->batch;
    const bool grows = zero_plan_batch_grows(r);
    if (grows) in.accumulation = 1;
    ZERO_TRY(zero_plan_fit_batch(
        &in, grows ? 0 : r->config.global_batch / r->config.plan.n_ranks, room, b));
    int64_t sequences = r->config.plan.n_ranks * b->accumulation * b->micro_batch;
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:i, s:I, s:I, s:b}", "bytes", r->request.fit_memory,
                  "micro_batch", b->micro_batch, "needed", b->needed, "accumulation",
                  b->accumulation, "global_batch", sequences, "tokens_per_step",
                  sequences * r->shape.seq, "grows_with_ranks", grows);
    if (b->next > 0) zero_put_whole(object, "next_micro_batch", b->next);
    if (b->next > 0) zero_put_whole(object, "next_needed", (int64_t)b->next_needed);
    json_object_set_new(stage->facts, "fits_batch", object);
    return ZERO_OK;
}

/* Other plans begin with what was asked: a schedule's input has no texts where this model's
 * steps have no memory for their caches. */
zero_status zero_plan_stage_make(zero_plan_report *r, int number, zero_plan_stage *stage)
{
    const zero_plan_request *o = &r->request;
    const zero_plan_input in = zero_plan_report_input(r, r->part, &r->place, number);
    ZERO_TRY(zero_schedule_compile(&stage->schedule, &in));
    if (o->simulated) return ZERO_OK;
    zero_plan_add_up(&stage->schedule, &stage->ledger);
    json_t *partitions = json_object();
    stage->facts = json_object();
    int *kept;
    size_t bytes;
    json_t *groups = json_array();
    ZERO_TRY(zero_new(&kept, r->part->n_groups, "groups"));
    int n = zero_plan_kept(&stage->schedule, kept, &bytes);
    for (int i = 0; i < n; i++)
        json_array_append_new(groups, json_string(r->model.groups[kept[i]].name));
    free(kept);
    json_object_set_new(stage->facts, "kept",
                        json_pack("{s:I, s:o}", "bytes", bytes, "groups", groups));
    json_object_set_new(stage->facts, "partitions", partitions);
    for (int k = 0; k < ZERO_PARTITION_SCHEMES; k++)
        ZERO_TRY(put_partition(r, in, (zero_partition_scheme)k, partitions));
    if (in.accumulation > 1) ZERO_TRY(put_price(in, stage));
    if (o->has_time) {
        ZERO_TRY(zero_plan_time_step(&stage->schedule, &o->machine, &stage->time));
        json_object_set_new(stage->facts, "time", zero_plan_time_facts(r, &stage->time));
    }
    if (o->has_time && o->machine.disk_write > 0.0) put_saves(r, stage);
    put_update(r, stage);
    if (o->has_disk && zero_config_directory(&r->config)) ZERO_TRY(put_disk(r, stage));
    zero_plan_room room = {
        .bytes = (size_t)(o->fit_batch ? o->fit_memory : o->fit),
        .context = zero_config_context(&r->config),
        .host = zero_plan_host_room(r),
        .disk = (size_t)o->fit_disk,
    };
    if (o->fit > 0) {
        zero_plan_fitted f;
        ZERO_TRY(zero_plan_fit(&r->shape, &in, &room, &f));
        json_t *object =
            json_pack("{s:I, s:I, s:I, s:b}", "layers", f.layers, "parameters", f.n_params,
                      "needed", f.needed, "is_deepest", f.layers == ZERO_MOST_LAYERS);
        if (f.host > 0) zero_put_whole(object, "host", (int64_t)f.host);
        if (f.file > 0) zero_put_whole(object, "file", (int64_t)f.file);
        json_object_set_new(stage->facts, "fits", object);
    }
    if (o->ablation) ZERO_TRY(put_ablation(stage));
    if (o->fit_batch) ZERO_TRY(put_batch(r, in, &room, stage));
    if (!o->peers) return ZERO_OK;
    ZERO_TRY(zero_plan_peers_make(r, number, &stage->peers));
    json_object_set_new(stage->facts, "peers", zero_plan_peers_json(r, stage));
    return ZERO_OK;
}
