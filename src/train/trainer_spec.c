/* The arguments of zero_trainer_open(): read, checked, and compared between ranks. */

#include "base/hash.h"

#include "comm/fields.h"
#include "comm/sentence.h"
#include "comm/wire.h"
#include "math/backends.h"
#include "math/device.h"
#include "math/threads.h"
#include "sharding/compile.h"
#include "train/config.h"
#include "train/trainer.h"

static zero_status read_collectives(const zero_trainer_spec *spec, const zero_comm *comm,
                                    zero_engine_spec *e)
{
    const char *name = spec->collectives ? spec->collectives : "auto", *why;
    e->may_use_p2p = zero_same_text(name, "auto");
    if (e->may_use_p2p)
        e->plan.collectives = zero_algorithm_choose(e->plan.layout, &why);
    else if (!zero_algorithm_find(name, &e->plan.collectives)) {
        zero_sentence known = {.used = 0};
        for (int i = 0; zero_algorithm_name_at(i); i++)
            zero_sentence_add(&known, " %s", zero_algorithm_name_at(i));
        return zero_fail(ZERO_ERR_INVALID, "collectives '%s': expected one of auto%s", name,
                         known.chars);
    }
    if (!zero_algorithm_get(e->plan.collectives)->posts_mpi_collectives)
        e->plan.message = zero_wire_message(&comm->wire);
    return ZERO_OK;
}

static zero_status read_offload(const zero_trainer_spec *spec, zero_engine_spec *e)
{
    zero_plan_input *plan = &e->plan;
    bool is_host = spec->offload && zero_same_text(spec->offload, "host");
    e->directory = is_host ? NULL : spec->offload;
    plan->offload_host = is_host;
    plan->offload_parameters = spec->offload_parameters;
    plan->offload_activations = spec->offload_activations;
    if (spec->offload_depth != 0) plan->offload_depth = spec->offload_depth;
    plan->delayed_from = spec->delayed_update;
    if (spec->offload) {
        const char *name =
            spec->offload_when ? spec->offload_when : zero_offload_name(ZERO_OFFLOAD_LAZY);
        int place = ZERO_OFFLOAD_END;
        while (place <= ZERO_OFFLOAD_BACKWARD &&
               !zero_same_text(name, zero_offload_name(place)))
            place++;
        ZERO_INVALID_IF(place > ZERO_OFFLOAD_BACKWARD,
                        "offload_when '%s': expected one of end, lazy, backward", name);
        ZERO_INVALID_IF(spec->delayed_update != 0 && place != ZERO_OFFLOAD_LAZY,
                        "delayed_update with offload_when '%s': give one of them", name);
        plan->offload =
            spec->delayed_update != 0 ? ZERO_OFFLOAD_DELAYED : (zero_offload)place;
        return ZERO_OK;
    }
    ZERO_INVALID_IF(spec->offload_when || spec->delayed_update != 0,
                    "offload_when and delayed_update need offload: the directory of the "
                    "scratch file, or with a device host");
    return ZERO_OK;
}

const char *zero_trainer_device(const zero_trainer_spec *spec)
{
    return spec->device ? spec->device : zero_device_name_at(0);
}

#define MOST_THREADS 4096

static zero_status check_spec(const zero_trainer_spec *spec)
{
    ZERO_INVALID_IF(!spec, "a trainer without a spec: the pointer is NULL");
    ZERO_TRY(zero_model_check_described(spec->model));
    ZERO_INVALID_IF(spec->type != ZERO_FP32 && spec->type != ZERO_BF16 &&
                        spec->type != ZERO_FP16,
                    "type %d: expected one of zero_type", (int)spec->type);
    ZERO_TRY(zero_check_whole("seed", spec->seed, 0, INT64_MAX));
    ZERO_TRY(zero_check_whole("threads", spec->threads, 0, MOST_THREADS));
    ZERO_FAIL_IF(spec->threads > 1 && !zero_cpu_has_threads(), ZERO_ERR_UNSUPPORTED,
                 "threads %d: this build has no OpenMP, so a rank has one thread; start "
                 "more ranks, or build with a compiler that has it and -DZERO_OPENMP=ON",
                 spec->threads);
    if (spec->bucket != 0)
        ZERO_TRY(zero_check_whole("bucket", spec->bucket, ZERO_SHARD_GRANULE,
                                  ZERO_PLAN_MOST_BUCKET));
    ZERO_INVALID_IF(!(spec->accumulation >= 0 &&
                      spec->accumulation <= ZERO_CONFIG_ACCUMULATION &&
                      spec->eval_batches >= 0 && spec->eval_batches <= INT32_MAX),
                    "accumulation %d, eval_batches %" PRId64 ": expected at most %" PRId64
                    " and 2^31 - 1, and no negative number",
                    spec->accumulation, spec->eval_batches, ZERO_CONFIG_ACCUMULATION);
    return ZERO_OK;
}

zero_status zero_trainer_read_spec(const zero_trainer_spec *spec, zero_comm *comm,
                                   zero_engine_spec *e)
{
    ZERO_TRY(check_spec(spec));
    zero_plan_input plan = zero_plan_input_standard(spec->model, comm->size, comm->rank);
    plan = zero_engine_place(plan, spec->model, comm);
    plan.stage = spec->stage;
    plan.type = spec->type;
    plan.micro_batch = zero_or_else(spec->micro_batch, plan.micro_batch);
    plan.seq = zero_or_else(spec->seq, plan.seq);
    plan.accumulation = (int)zero_or_else(spec->accumulation, plan.accumulation);
    plan.reproducible = spec->reproducible;
    plan.recompute = spec->recompute;
    plan.serial = spec->serial;
    plan.bucket = zero_or_else(spec->bucket, plan.bucket);
    plan.prefetch = spec->prefetch;
    plan.persist = spec->persist;
    if (spec->check_replicas != 0)
        plan.check_replicas = spec->check_replicas > 0 ? spec->check_replicas : 0;
    plan.check_memory = spec->check_memory;
    plan.check_compute = spec->check_compute;
    plan.threads = zero_or_else(spec->threads, plan.threads);
    zero_bits bits = ZERO_BITS_AUTO;
    ZERO_INVALID_IF(spec->bits && !zero_bits_find(spec->bits, &bits),
                    "bits '%s': expected auto, portable or fastest", spec->bits);
    *e = (zero_engine_spec){.plan = plan,
                            .bits = bits,
                            .seed = spec->seed,
                            .eval_batches = zero_or_else(spec->eval_batches, 1),
                            .memory_limit = spec->memory_limit};
    const char *scheme = spec->partition ? spec->partition : "slice";
    const bool is_owner = zero_same_text(scheme, "owner");
    ZERO_INVALID_IF(!is_owner && !zero_same_text(scheme, "slice"),
                    "partition '%s': expected 'slice' or 'owner'", scheme);
    e->plan.partition = is_owner ? ZERO_PARTITION_OWNER : ZERO_PARTITION_SLICE;
    ZERO_TRY(zero_rule_read(spec->optimizer, &e->plan.optimizer));
    ZERO_TRY(zero_muon_scale_read(spec->muon_scale, &e->plan.muon_scale));
    ZERO_TRY(read_offload(spec, e));
    ZERO_TRY(read_collectives(spec, comm, e));
    /* On a device its backend computes, and no other. */
    const char *standard = zero_backend_name_at(0);
    const char *name = spec->backend ? spec->backend : standard, *why;
    const zero_backend *device;
    const zero_plugin *plugin;
    ZERO_TRY(zero_device_find(zero_trainer_device(spec), &device, &plugin));
    ZERO_TRY(zero_backend_find(name, &e->backend));
    if (device) {
        ZERO_INVALID_IF(
            !zero_same_text(name, standard),
            "backend '%s' with device '%s': the device computes; give one of them", name,
            spec->device);
        e->backend = device;
        e->plan.device = 1;
        e->may_stage = true;
        e->plan.ipc =
            device->memory->sharing && zero_plan_can_reach_devices(&e->plan, &why);
    }
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
                                           ZERO_FIELD(zero_engine_spec, eval_batches),
                                           ZERO_FIELD(zero_engine_spec, bits)};
static const zero_field backend_fields[] = {
    {"backend", ZERO_FIELD_TEXT, offsetof(zero_backend, name), NULL}};

/* What a tensor is; what a unit reads and needs. A unit's functions and its shape are the
 * program's own, and a GPT-2's dropout and its seed change no table. */
static const zero_field tensor_fields[] = {
    ZERO_FIELD(zero_tensor, name),     ZERO_FIELD(zero_tensor, rows),
    ZERO_FIELD(zero_tensor, cols),     ZERO_FIELD(zero_tensor, group),
    ZERO_FIELD(zero_tensor, decays),   ZERO_FIELD(zero_tensor, init),
    ZERO_FIELD(zero_tensor, init_std), ZERO_FIELD(zero_tensor, is_hidden)};
static const zero_field unit_fields[] = {
    ZERO_FIELD(zero_unit, name),
    ZERO_FIELD(zero_unit, index),
    ZERO_FIELD(zero_unit, n_groups),
    {"first", ZERO_FIELD_INT, offsetof(zero_unit, groups[0]), NULL},
    {"second", ZERO_FIELD_INT, offsetof(zero_unit, groups[1]), NULL},
    ZERO_FIELD(zero_unit, backward_without_params),
    ZERO_FIELD(zero_unit, recompute_without_out),
    ZERO_FIELD(zero_unit, computes_by_layers)};
static const zero_field size_fields[] = {
    ZERO_FIELD(zero_unit_sizes, out),          ZERO_FIELD(zero_unit_sizes, saved),
    ZERO_FIELD(zero_unit_sizes, forward_work), ZERO_FIELD(zero_unit_sizes, backward_work),
    ZERO_FIELD(zero_unit_sizes, thread_work),  ZERO_FIELD(zero_unit_sizes, logits)};
static const zero_field shape_fields[] = {ZERO_FIELD(zero_shape, dropout),
                                          ZERO_FIELD(zero_shape, seed)};

/* Rows are hashed first, and then, if the hashes differ, compared to name the first that
 * does. */
typedef struct {
    zero_comm *comm; /* NULL: they are hashed */
    uint64_t hash;
} comparison;

static zero_status visit(comparison *c, const char *kind, const char *name, int n,
                         const zero_field *fields, const void *of)
{
    char what[96];
    zero_print(what, "%s '%s'", kind, name);
    if (c->comm) return zero_compare_fields(c->comm, what, n, fields, of);
    for (int i = 0; i < n; i++) {
        char text[ZERO_FIELD_TEXT_BYTES] = "";
        zero_field_write(&fields[i], of, text);
        c->hash = XXH3_64bits_withSeed(text, strlen(text), c->hash);
    }
    return ZERO_OK;
}

static zero_status visit_tables(const zero_plan_input *plan, comparison *c)
{
    const zero_model *m = plan->model;
    for (int i = 0; i < m->n_tensors; i++)
        ZERO_TRY(visit(c, "tensor", m->tensors[i].name, ZERO_COUNT(tensor_fields),
                       tensor_fields, &m->tensors[i]));
    for (int i = 0; i < m->n_units; i++) {
        zero_unit u = m->units[i];
        zero_unit_sizes sizes = u.sizes(&m->units[i], plan->micro_batch, plan->seq);
        for (int k = u.n_groups; k < ZERO_UNIT_GROUPS; k++) u.groups[k] = -1;
        ZERO_TRY(visit(c, "unit", u.name, ZERO_COUNT(unit_fields), unit_fields, &u));
        ZERO_TRY(visit(c, "unit", u.name, ZERO_COUNT(size_fields), size_fields, &sizes));
    }
    return ZERO_OK;
}

zero_status zero_trainer_compare(const zero_engine_spec *e, zero_comm *comm)
{
    const zero_model *m = e->plan.model;
    const zero_shape none = {0};
    comparison c = {0};
    int64_t most;
    bool same;
    ZERO_TRY(zero_compare_fields(comm, "the spec", ZERO_PLAN_FIELDS, zero_plan_fields,
                                 &e->plan));
    ZERO_TRY(
        zero_compare_fields(comm, "the spec", ZERO_COUNT(engine_fields), engine_fields, e));
    ZERO_TRY(zero_compare_fields(comm, "the spec", ZERO_COUNT(backend_fields),
                                 backend_fields, e->backend));
    ZERO_TRY(
        zero_compare_fields(comm, "the model", ZERO_COUNT(model_fields), model_fields, m));
    ZERO_TRY(zero_compare_fields(comm, "the model", ZERO_COUNT(shape_fields), shape_fields,
                                 m->shape ? m->shape : &none));
    ZERO_TRY(visit_tables(&e->plan, &c));
    ZERO_TRY(zero_comm_vote(comm, 0, (int64_t)(c.hash >> 1), &most, &same));
    if (same) return ZERO_OK;
    c.comm = comm;
    ZERO_TRY(visit_tables(&e->plan, &c));
    return zero_fail(ZERO_ERR_INVALID, "ranks have different models");
}
