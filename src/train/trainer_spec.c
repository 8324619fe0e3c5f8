/* The arguments of zero_trainer_open(): read, checked, and compared between ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/number.h"
#include "comm/fields.h"
#include "comm/sentence.h"
#include "lists/algorithm.h"
#include "math/backends.h"
#include "math/device.h"
#include "math/threads.h"
#include "sharding/compile.h"
#include "train/config.h"
#include "train/trainer.h"
#include "zero/gpt2.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

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

static zero_status read_place(const zero_trainer_spec *spec, zero_plan_input *plan)
{
    const char *name =
        spec->offload_when ? spec->offload_when : zero_offload_name(ZERO_OFFLOAD_LAZY);
    int place = ZERO_OFFLOAD_END;
    while (place <= ZERO_OFFLOAD_BACKWARD &&
           strcmp(name, zero_offload_name((zero_offload)place)) != 0)
        place++;
    if (place > ZERO_OFFLOAD_BACKWARD)
        return zero_fail(ZERO_ERR_INVALID,
                         "offload_when '%s': expected one of end, lazy, backward", name);
    if (spec->delayed_update != 0 && place != ZERO_OFFLOAD_LAZY)
        return zero_fail(ZERO_ERR_INVALID,
                         "delayed_update with offload_when '%s': give one of them", name);
    plan->offload = spec->delayed_update != 0 ? ZERO_OFFLOAD_DELAYED : (zero_offload)place;
    return ZERO_OK;
}

static zero_status read_offload(const zero_trainer_spec *spec, zero_engine_spec *e)
{
    zero_plan_input *plan = &e->plan;
    bool is_host = spec->offload && strcmp(spec->offload, "host") == 0;
    e->directory = is_host ? NULL : spec->offload;
    plan->offload_host = is_host;
    plan->offload_parameters = spec->offload_parameters;
    plan->offload_activations = spec->offload_activations;
    if (spec->offload_depth != 0) plan->offload_depth = spec->offload_depth;
    plan->delayed_from = spec->delayed_update;
    if (spec->offload) return read_place(spec, plan);
    if (!spec->offload_when && spec->delayed_update == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "offload_when and delayed_update need offload: the directory of the "
                     "scratch file, or with a device host");
}

const char *zero_trainer_device(const zero_trainer_spec *spec)
{
    return spec->device ? spec->device : zero_device_name_at(0);
}

/* On a device its backend computes, and no other. */
static zero_status read_backend(const zero_trainer_spec *spec, zero_engine_spec *e)
{
    const char *standard = zero_backend_name_at(0);
    const char *name = spec->backend ? spec->backend : standard, *why;
    const zero_backend *device;
    const zero_plugin *plugin;
    ZERO_TRY(zero_device_find(zero_trainer_device(spec), &device, &plugin));
    ZERO_TRY(zero_backend_find(name, &e->backend));
    if (!device) return ZERO_OK;
    if (strcmp(name, standard) != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "backend '%s' with device '%s': the device computes; give one of "
                         "them",
                         name, spec->device);
    e->backend = device;
    e->plan.device = 1;
    e->may_stage = true;
    e->plan.ipc = device->memory->sharing && zero_plan_can_reach_devices(&e->plan, &why);
    return ZERO_OK;
}

static zero_status check_whole(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "%s %" PRId64 ": expected %" PRId64 " to %" PRId64,
                     name, value, least, most);
}

#define MOST_THREADS 4096

static zero_status check_threads(const zero_trainer_spec *spec)
{
    ZERO_TRY(check_whole("threads", spec->threads, 0, MOST_THREADS));
    if (spec->threads <= 1 || zero_cpu_has_threads()) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "threads %d: this build has no OpenMP, so a rank has one thread; start "
        "more ranks, or build with a compiler that has it and -DZERO_OPENMP=ON",
        spec->threads);
}

static zero_status check_spec(const zero_trainer_spec *spec)
{
    if (!spec)
        return zero_fail(ZERO_ERR_INVALID, "a trainer without a spec: the pointer is NULL");
    ZERO_TRY(zero_model_check_described(spec->model));
    if (spec->type != ZERO_FP32 && spec->type != ZERO_BF16 && spec->type != ZERO_FP16)
        return zero_fail(ZERO_ERR_INVALID, "type %d: expected one of zero_type",
                         (int)spec->type);
    ZERO_TRY(check_whole("seed", spec->seed, 0, INT64_MAX));
    ZERO_TRY(check_threads(spec));
    if (spec->bucket != 0)
        ZERO_TRY(
            check_whole("bucket", spec->bucket, ZERO_SHARD_GRANULE, ZERO_PLAN_MOST_BUCKET));
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

zero_status zero_trainer_read_spec(const zero_trainer_spec *spec, zero_comm *comm,
                                   zero_engine_spec *e)
{
    ZERO_TRY(check_spec(spec));
    zero_plan_input plan = zero_plan_input_standard(spec->model, comm->size, comm->rank);
    plan = zero_engine_place(plan, spec->model, comm);
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
    if (spec->check_replicas != 0)
        plan.check_replicas = spec->check_replicas > 0 ? spec->check_replicas : 0;
    plan.check_memory = spec->check_memory;
    plan.threads = or_else(spec->threads, plan.threads);
    *e = (zero_engine_spec){.plan = plan,
                            .seed = spec->seed,
                            .eval_batches = or_else(spec->eval_batches, 1),
                            .memory_limit = spec->memory_limit};
    ZERO_TRY(read_partition(spec, &e->plan));
    ZERO_TRY(read_offload(spec, e));
    ZERO_TRY(read_collectives(spec, e));
    ZERO_TRY(read_backend(spec, e));
    if (spec->bucket == 0) /* of a plan that is complete: a device decides what is staged */
        e->plan.bucket = zero_max(e->plan.bucket, zero_schedule_least_bucket(&e->plan));
    return ZERO_OK;
}

/* ---- what ranks must have in common ---- */

static const zero_field model_fields[] = {
    ZERO_FIELD(zero_model, n_params), ZERO_FIELD(zero_model, n_tensors),
    ZERO_FIELD(zero_model, n_groups), ZERO_FIELD(zero_model, n_units),
    ZERO_FIELD(zero_model, vocab),    ZERO_FIELD(zero_model, seq)};
static const zero_field engine_fields[] = {ZERO_FIELD(zero_engine_spec, seed),
                                           ZERO_FIELD(zero_engine_spec, eval_batches)};
static const zero_field backend_fields[] = {
    {"backend", ZERO_FIELD_TEXT, offsetof(zero_backend, name), NULL}};

/* A tensor as a table of fields sees it; floats become doubles with the same digits. */
struct tensor_view {
    const char *name;
    int64_t rows, cols;
    int group, init;
    bool decays;
    double init_std;
};

static const zero_field tensor_fields[] = {
    ZERO_FIELD(struct tensor_view, name),    ZERO_FIELD(struct tensor_view, rows),
    ZERO_FIELD(struct tensor_view, cols),    ZERO_FIELD(struct tensor_view, group),
    ZERO_FIELD(struct tensor_view, decays),  ZERO_FIELD(struct tensor_view, init),
    ZERO_FIELD(struct tensor_view, init_std)};

static struct tensor_view view_tensor(const zero_tensor *t)
{
    return (struct tensor_view){.name = t->name,
                                .rows = t->rows,
                                .cols = t->cols,
                                .group = t->group,
                                .init = (int)t->init,
                                .decays = t->decays,
                                .init_std = (double)t->init_std};
}

/* A unit: what it reads and needs. Its functions and its shape are the program's own. */
struct unit_view {
    const char *name;
    int index, n_groups, first, second;
    bool backward_without_params, recompute_without_out, computes_by_layers;
    int64_t out, saved, forward_work, backward_work, thread_work, logits;
};

static const zero_field unit_fields[] = {
    ZERO_FIELD(struct unit_view, name),
    ZERO_FIELD(struct unit_view, index),
    ZERO_FIELD(struct unit_view, n_groups),
    ZERO_FIELD(struct unit_view, first),
    ZERO_FIELD(struct unit_view, second),
    ZERO_FIELD(struct unit_view, backward_without_params),
    ZERO_FIELD(struct unit_view, recompute_without_out),
    ZERO_FIELD(struct unit_view, computes_by_layers),
    ZERO_FIELD(struct unit_view, out),
    ZERO_FIELD(struct unit_view, saved),
    ZERO_FIELD(struct unit_view, forward_work),
    ZERO_FIELD(struct unit_view, backward_work),
    ZERO_FIELD(struct unit_view, thread_work),
    ZERO_FIELD(struct unit_view, logits)};

static struct unit_view view_unit(const zero_plan_input *plan, const zero_unit *u)
{
    zero_unit_sizes s = u->sizes(u, plan->micro_batch, plan->seq);
    return (struct unit_view){.name = u->name,
                              .index = u->index,
                              .n_groups = u->n_groups,
                              .first = u->n_groups > 0 ? u->groups[0] : -1,
                              .second = u->n_groups > 1 ? u->groups[1] : -1,
                              .backward_without_params = u->backward_without_params,
                              .recompute_without_out = u->recompute_without_out,
                              .computes_by_layers = u->computes_by_layers,
                              .out = s.out,
                              .saved = s.saved,
                              .forward_work = s.forward_work,
                              .backward_work = s.backward_work,
                              .thread_work = s.thread_work,
                              .logits = s.logits};
}

static uint64_t hash_fields(uint64_t hash, int n, const zero_field *fields, const void *of)
{
    for (int i = 0; i < n; i++) {
        char text[ZERO_FIELD_TEXT_BYTES] = "";
        zero_field_write(&fields[i], of, text);
        hash = XXH3_64bits_withSeed(text, strlen(text), hash);
    }
    return hash;
}

static uint64_t hash_tables(const zero_plan_input *plan)
{
    const zero_model *m = plan->model;
    uint64_t hash = 0;
    for (int i = 0; i < m->n_tensors; i++) {
        struct tensor_view v = view_tensor(&m->tensors[i]);
        hash = hash_fields(hash, COUNT(tensor_fields), tensor_fields, &v);
    }
    for (int i = 0; i < m->n_units; i++) {
        struct unit_view v = view_unit(plan, &m->units[i]);
        hash = hash_fields(hash, COUNT(unit_fields), unit_fields, &v);
    }
    return hash;
}

/* Row by row, to name the first that differs; only after the hashes did. */
static zero_status tell_difference(const zero_plan_input *plan, zero_comm *comm)
{
    const zero_model *m = plan->model;
    char what[96];
    for (int i = 0; i < m->n_tensors; i++) {
        struct tensor_view v = view_tensor(&m->tensors[i]);
        snprintf(what, sizeof what, "tensor '%s'", m->tensors[i].name);
        ZERO_TRY(zero_compare_fields(comm, what, COUNT(tensor_fields), tensor_fields, &v));
    }
    for (int i = 0; i < m->n_units; i++) {
        struct unit_view v = view_unit(plan, &m->units[i]);
        snprintf(what, sizeof what, "unit '%s'", m->units[i].name);
        ZERO_TRY(zero_compare_fields(comm, what, COUNT(unit_fields), unit_fields, &v));
    }
    return zero_fail(ZERO_ERR_INVALID, "ranks have different models");
}

/* A GPT-2's dropout and its seed change no table. */
struct shape_view {
    double dropout;
    int64_t seed;
};

static struct shape_view view_shape(const zero_gpt2_shape *s)
{
    return (struct shape_view){.dropout = (double)s->dropout, .seed = s->seed};
}

static const zero_field shape_fields[] = {ZERO_FIELD(struct shape_view, dropout),
                                          ZERO_FIELD(struct shape_view, seed)};

static zero_status compare_models(const zero_plan_input *plan, zero_comm *comm)
{
    const zero_model *m = plan->model;
    const uint64_t positive = UINT64_MAX >> 1;
    struct shape_view shape = {0};
    int64_t most;
    bool same;
    if (m->shape) shape = view_shape(m->shape);
    ZERO_TRY(zero_compare_fields(comm, "the model", COUNT(model_fields), model_fields, m));
    ZERO_TRY(
        zero_compare_fields(comm, "the model", COUNT(shape_fields), shape_fields, &shape));
    ZERO_TRY(
        zero_comm_vote(comm, 0, (int64_t)(hash_tables(plan) & positive), &most, &same));
    return same ? ZERO_OK : tell_difference(plan, comm);
}

zero_status zero_trainer_compare(const zero_engine_spec *e, zero_comm *comm)
{
    ZERO_TRY(zero_compare_fields(comm, "the spec", ZERO_PLAN_FIELDS, zero_plan_fields,
                                 &e->plan));
    ZERO_TRY(zero_compare_fields(comm, "the spec", COUNT(engine_fields), engine_fields, e));
    ZERO_TRY(zero_compare_fields(comm, "the spec", COUNT(backend_fields), backend_fields,
                                 e->backend));
    return compare_models(&e->plan, comm);
}
