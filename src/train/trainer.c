/* zero/train.h: a trainer is an engine that gets its model, samples and checkpoints from the
 * caller. */
#include "zero/train.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "checkpoint/directory.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "comm/algorithm.h"
#include "comm/sentence.h"
#include "engine/engine.h"
#include "math/backends.h"
#include "sharding/update.h"
#include "train/compare.h"
#include "train/config.h"

struct zero_trainer {
    zero_engine engine;
    zero_comm *comm;     /* borrowed */
    zero_volume at_open; /* what the group had moved before */
};

/* ---- the spec ---- */

static zero_status read_partition(const zero_trainer_spec *spec, zero_plan_input *plan)
{
    plan->partition = ZERO_PARTITION_SLICE;
    if (!spec->partition || strcmp(spec->partition, "slice") == 0) return ZERO_OK;
    plan->partition = ZERO_PARTITION_OWNER;
    if (strcmp(spec->partition, "owner") == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "partition '%s': expected 'slice' or 'owner'",
                     spec->partition);
}

static zero_status no_such_algorithm(const char *name)
{
    zero_sentence known = {.used = 0};
    for (int i = 0; zero_algorithm_name_at(i); i++)
        zero_sentence_add(&known, " %s", zero_algorithm_name_at(i));
    return zero_fail(ZERO_ERR_INVALID, "collectives '%s': expected one of auto%s", name,
                     known.chars);
}

static zero_status read_collectives(const zero_trainer_spec *spec, zero_engine_spec *e)
{
    const char *name = spec->collectives ? spec->collectives : "auto", *why;
    e->may_use_p2p = strcmp(name, "auto") == 0;
    if (e->may_use_p2p)
        e->plan.collectives = zero_algorithm_choose(e->plan.layout, &why);
    else if (!zero_algorithm_find(name, &e->plan.collectives))
        return no_such_algorithm(name);
    return ZERO_OK;
}

static zero_status check_spec(const zero_trainer_spec *spec)
{
    if (!spec->model || !spec->model->units)
        return zero_fail(ZERO_ERR_INVALID,
                         "a trainer without a model: describe one first (zero/model.h)");
    if (spec->type != ZERO_FP32 && spec->type != ZERO_BF16 && spec->type != ZERO_FP16)
        return zero_fail(ZERO_ERR_INVALID, "type %d: expected one of zero_type",
                         (int)spec->type);
    if (spec->accumulation >= 0 && spec->accumulation <= ZERO_CONFIG_ACCUMULATION &&
        spec->eval_batches >= 0 && spec->eval_batches <= INT32_MAX)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "accumulation %d, eval_batches %" PRId64 ": expected at most %" PRId64
                     " and 2^31 - 1, and no negative number",
                     spec->accumulation, spec->eval_batches, ZERO_CONFIG_ACCUMULATION);
}

static int64_t or_else(int64_t value, int64_t standard)
{
    return value == 0 ? standard : value;
}

static zero_status read_spec(const zero_trainer_spec *spec, const zero_comm *comm,
                             zero_engine_spec *e)
{
    ZERO_TRY(check_spec(spec));
    zero_plan_input plan = zero_plan_input_standard(spec->model, comm->size, comm->rank);
    plan.stage = spec->stage;
    plan.type = spec->type;
    plan.micro_batch = or_else(spec->micro_batch, plan.micro_batch);
    plan.seq = or_else(spec->seq, plan.seq);
    plan.accumulation = (int)or_else(spec->accumulation, plan.accumulation);
    plan.reproducible = spec->reproducible;
    plan.recompute = spec->recompute;
    plan.serial = spec->serial;
    plan.bucket = or_else(spec->bucket, plan.bucket);
    plan.prefetch = spec->prefetch;
    plan.persist = spec->persist;
    plan.layout = &comm->layout;
    *e = (zero_engine_spec){.plan = plan,
                            .seed = spec->seed,
                            .eval_batches = or_else(spec->eval_batches, 1),
                            .memory_limit = spec->memory_limit};
    ZERO_TRY(read_partition(spec, &e->plan));
    ZERO_TRY(read_collectives(spec, e));
    return zero_backend_find(spec->backend ? spec->backend : "cpu", &e->backend);
}

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const zero_field model_fields[] = {ZERO_FIELD(zero_model, n_params),
                                          ZERO_FIELD(zero_model, n_tensors),
                                          ZERO_FIELD(zero_model, n_units)};
static const zero_field engine_fields[] = {ZERO_FIELD(zero_engine_spec, seed),
                                           ZERO_FIELD(zero_engine_spec, eval_batches)};
static const zero_field backend_fields[] = {
    {"backend", ZERO_FIELD_TEXT, offsetof(zero_backend, name), NULL}};

/* Ranks with different specs would wait for each other, or silently train different models. */
static zero_status compare_specs(const zero_engine_spec *e, zero_comm *comm)
{
    ZERO_TRY(zero_compare_fields(comm, COUNT(model_fields), model_fields, e->plan.model));
    ZERO_TRY(zero_compare_fields(comm, ZERO_PLAN_FIELDS, zero_plan_fields, &e->plan));
    ZERO_TRY(zero_compare_fields(comm, COUNT(engine_fields), engine_fields, e));
    return zero_compare_fields(comm, COUNT(backend_fields), backend_fields, e->backend);
}

/* ---- open and close ---- */

/* Gradients and parameters, without votes and comparisons. */
static zero_volume moved(const zero_comm *comm)
{
    zero_traffic sum = {0};
    for (int kind = 0; kind < ZERO_COLLECTIVE_KINDS; kind++)
        zero_traffic_add(&sum, 1, &comm->traffic[kind]);
    return zero_traffic_total(&sum);
}

zero_status zero_trainer_open(const zero_trainer_spec *spec, zero_comm *comm,
                              zero_trainer **trainer)
{
    zero_engine_spec e;
    ZERO_TRY(zero_agree(comm, read_spec(spec, comm, &e)));
    ZERO_TRY(compare_specs(&e, comm));
    zero_trainer *t = malloc(sizeof *t);
    zero_status st = t ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for a trainer");
    st = zero_agree(comm, st);
    if (st == ZERO_OK) {
        t->comm = comm;
        t->at_open = moved(comm);
        st = zero_engine_init(&t->engine, &e, comm);
    }
    if (st == ZERO_OK)
        *trainer = t;
    else
        free(t);
    return st;
}

void zero_trainer_close(zero_trainer *trainer)
{
    if (!trainer) return;
    zero_engine_destroy(&trainer->engine);
    free(trainer);
}

/* ---- steps ---- */

static zero_status check_source(const zero_source *source)
{
    if (source->sample) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "a source without its function sample");
}

static zero_status check_input(const zero_step_input *in)
{
    zero_adamw h = {.lr = (float)in->lr,
                    .beta1 = (float)in->beta1,
                    .beta2 = (float)in->beta2,
                    .eps = (float)in->eps,
                    .weight_decay = (float)in->weight_decay};
    return zero_update_check(&h, in->clip);
}

zero_status zero_trainer_step(zero_trainer *trainer, const zero_source *source,
                              const zero_step_input *input, zero_step_result *result)
{
    zero_run_output out;
    double loss_scale = (double)trainer->engine.loss_scale.scale;
    ZERO_TRY(check_source(source));
    ZERO_TRY(check_input(input));
    ZERO_TRY(zero_engine_step(&trainer->engine, source, input, &out));
    *result = (zero_step_result){.loss = out.loss,
                                 .grad_norm = out.grad_norm,
                                 .loss_scale = loss_scale,
                                 .skipped = out.overflow};
    return ZERO_OK;
}

zero_status zero_trainer_evaluate(zero_trainer *trainer, const zero_source *source,
                                  double *loss)
{
    ZERO_TRY(check_source(source));
    return zero_engine_evaluate(&trainer->engine, source, loss);
}

/* ---- checkpoints ---- */

static int64_t samples_per_step(const zero_plan_input *plan)
{
    return plan->n_ranks * plan->accumulation * plan->micro_batch;
}

zero_status zero_trainer_save(zero_trainer *trainer, const char *path, int64_t step)
{
    zero_engine *e = &trainer->engine;
    zero_checkpoint_directory directory;
    uint64_t bytes;
    int64_t samples = samples_per_step(&e->schedule.input),
            most = (INT64_C(1) << 62) / samples;
    if (step < 0 || step > most) /* a manifest counts no further */
        return zero_fail(ZERO_ERR_INVALID, "step %" PRId64 ": expected 0 to %" PRId64, step,
                         most);
    zero_checkpoint_input in = {.step = step, .samples = step * samples};
    zero_directory_opening how = {.wish = ZERO_DIRECTORY_MAY_BE_NEW,
                                  .patience = ZERO_DIRECTORY_PATIENCE};
    ZERO_TRY(zero_checkpoint_directory_open(trainer->comm, path, &how, &directory));
    zero_status st = zero_checkpoint_save(e, &directory.dir, &in, &bytes);
    zero_checkpoint_directory_close(&directory);
    return st == ZERO_OK ? zero_comm_barrier_after_files(trainer->comm) : st;
}

zero_status zero_trainer_resume(zero_trainer *trainer, const char *dir, int64_t *step)
{
    char path[ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME] = "";
    zero_comm *comm = trainer->comm;
    zero_checkpoint c;
    zero_status st = ZERO_OK;
    if (zero_comm_is_root(comm)) st = zero_checkpoint_find(dir, path, sizeof path);
    ZERO_TRY(zero_agree(comm, st));
    ZERO_TRY(zero_comm_broadcast(comm, 0, path, sizeof path));
    ZERO_TRY(zero_checkpoint_open_all(comm, path, &c));
    st = zero_checkpoint_load(&trainer->engine, &c);
    if (st == ZERO_OK) *step = c.manifest.step;
    zero_checkpoint_close(&c);
    return st;
}

/* ---- reading ---- */

zero_status zero_trainer_digest(zero_trainer *trainer, char hex[33])
{
    return zero_engine_digest(&trainer->engine, hex);
}

/* Each owner broadcasts its part. */
static zero_status read_tensor(zero_trainer *t, const zero_tensor *tensor, float *values)
{
    const zero_engine *e = &t->engine;
    const zero_partition *p = &e->schedule.groups[tensor->group].partition;
    zero_engine_state own = zero_engine_group(e, tensor->group);
    zero_range all = zero_range_of_tensor(tensor);
    for (int rank = 0; rank < t->comm->size; rank++) {
        zero_range part = zero_range_overlap(zero_partition_shard(p, rank), all);
        if (zero_range_is_empty(part)) continue;
        float *to = values + (part.begin - all.begin);
        size_t bytes = (size_t)zero_range_len(part) * sizeof *to;
        if (rank == t->comm->rank)
            memcpy(to, own.master + (part.begin - own.range.begin), bytes);
        ZERO_TRY(zero_comm_broadcast(t->comm, rank, to, bytes));
    }
    return ZERO_OK;
}

zero_status zero_trainer_read(zero_trainer *trainer, const char *tensor, float *values)
{
    const zero_model *model = trainer->engine.schedule.input.model;
    for (int i = 0; i < model->n_tensors; i++)
        if (strcmp(model->tensors[i].name, tensor) == 0)
            return read_tensor(trainer, &model->tensors[i], values);
    return zero_fail(ZERO_ERR_INVALID, "no tensor is called '%s'; the first is '%s'",
                     tensor, model->tensors[0].name);
}

/* ---- the ledger ---- */

zero_status zero_trainer_count(zero_trainer *trainer, zero_trainer_ledger *ledger)
{
    zero_engine *e = &trainer->engine;
    zero_peak planned, measured;
    ZERO_TRY(zero_engine_settle(e));
    ZERO_TRY(
        zero_agree(trainer->comm, zero_runner_memory(&e->runner, &planned, &measured)));
    zero_trainer_ledger l = {.planned_peak = planned.bytes,
                             .measured_peak = measured.bytes,
                             .states = planned.of_class[ZERO_CLASS_PARAMETERS] +
                                       planned.of_class[ZERO_CLASS_GRADIENTS] +
                                       planned.of_class[ZERO_CLASS_OPTIMIZER]};
    zero_traffic reduces = zero_engine_planned_traffic(e, ZERO_OP_REDUCE);
    zero_traffic plan = zero_engine_planned_traffic(e, ZERO_OP_GATHER);
    zero_traffic_add(&plan, 1, &reduces);
    zero_volume now = moved(trainer->comm), total = zero_traffic_total(&plan);
    l.planned_sent = total.bytes_sent;
    l.planned_received = total.bytes_received;
    l.measured_sent = now.bytes_sent - trainer->at_open.bytes_sent;
    l.measured_received = now.bytes_received - trainer->at_open.bytes_received;
    *ledger = l;
    return ZERO_OK;
}
