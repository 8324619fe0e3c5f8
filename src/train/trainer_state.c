/* zero/train.h: the state of a trainer, saved, loaded, read, written and counted. */

#include "base/hash.h"

#include "checkpoint/directory.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "comm/fields.h"
#include "train/trainer.h"

static zero_status check_not_null(const void *pointer, const char *name)
{
    ZERO_INVALID_IF(!pointer, "%s is NULL", name);
    return ZERO_OK;
}

/* ---- checkpoints ---- */

/* The number of a save, as ranks compare it. */
struct save {
    int64_t step;
};
static const zero_field save_fields[] = {ZERO_FIELD(struct save, step)};

zero_status zero_trainer_save(zero_trainer *trainer, const char *path, int64_t step)
{
    zero_checkpoint_directory directory;
    uint64_t bytes;
    ZERO_TRY(zero_trainer_check(trainer));
    ZERO_TRY(zero_trainer_publish(trainer));
    zero_status st = check_not_null(path, "the checkpoints' directory");
    if (st == ZERO_OK) st = zero_trainer_check_step(trainer, step);
    ZERO_TRY(zero_agree(trainer->comm, st));
    ZERO_TRY(zero_compare_fields(trainer->comm, "the save", 1, save_fields,
                                 &(struct save){step}));
    zero_checkpoint_input in = {.step = step,
                                .samples = step * zero_trainer_samples(trainer)};
    zero_directory_opening how = {.wish = ZERO_DIRECTORY_MAY_BE_NEW,
                                  .patience = ZERO_LOCK_PATIENCE};
    ZERO_TRY(zero_checkpoint_directory_open(trainer->comm, path, &how, &directory));
    st = zero_checkpoint_save(&trainer->engine, &directory.dir, &in, &bytes);
    zero_checkpoint_directory_close(&directory);
    return st == ZERO_OK ? zero_comm_barrier_after_files(trainer->comm) : st;
}

static zero_status load(void *engine, zero_checkpoint *c, ZERO_UNUSED const char *found)
{
    return zero_checkpoint_load(engine, c);
}

zero_status zero_trainer_resume(zero_trainer *trainer, const char *dir, int64_t *step)
{
    zero_checkpoint c;
    ZERO_TRY(zero_trainer_check(trainer));
    zero_status st = check_not_null(dir, "the checkpoints' directory");
    if (st == ZERO_OK) st = check_not_null(step, "the place for the step");
    ZERO_TRY(zero_agree(trainer->comm, st));
    zero_checkpoint_user user = {dir, load, &trainer->engine};
    trainer->is_written = false; /* loading sets all */
    ZERO_TRY(zero_checkpoint_use(trainer->comm, &user, &c));
    *step = c.manifest.step;
    zero_checkpoint_close(&c);
    return ZERO_OK;
}

zero_status zero_trainer_digest(zero_trainer *trainer, char hex[33])
{
    ZERO_TRY(zero_trainer_check(trainer));
    ZERO_TRY(zero_agree(trainer->comm, check_not_null(hex, "the place for the digest")));
    /* Else copies of what was written would differ. */
    ZERO_TRY(zero_trainer_publish(trainer));
    return zero_engine_digest(&trainer->engine, hex);
}

/* ---- tensors, by name ---- */

/* A call on elements [begin, end) of a tensor, as ranks compare it. */
struct access {
    const char *tensor;
    int64_t begin, end;
    const char *values; /* their hash, when writing */
};
static const zero_field access_fields[] = {
    ZERO_FIELD(struct access, tensor), ZERO_FIELD(struct access, begin),
    ZERO_FIELD(struct access, end), ZERO_FIELD(struct access, values)};

static zero_status find_tensor(const zero_trainer *t, const char *name, const void *values,
                               const zero_tensor **found)
{
    const zero_model *model = t->engine.schedule.model;
    ZERO_TRY(check_not_null(name, "the tensor's name"));
    ZERO_TRY(check_not_null(values, "the array of values"));
    for (int i = 0; i < model->n_tensors; i++) {
        *found = &model->tensors[i];
        if (zero_same_text(model->tensors[i].name, name)) return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_INVALID, "no tensor is called '%s'; the first is '%s'", name,
                     model->tensors[0].name);
}

/* One verdict on the arguments; `mine` is this rank's. */
static zero_status agree_on(zero_trainer *t, zero_status mine, const struct access *access)
{
    ZERO_TRY(zero_agree(t->comm, mine));
    return zero_compare_fields(t->comm, "the call", ZERO_COUNT(access_fields),
                               access_fields, access);
}

/* ---- reading ---- */

/* Writes elements `part` of the tensor's group, which this rank holds, to `to`. */
typedef zero_status copy_part(zero_engine *e, int group, zero_range part, float *to);

/* The caller's array for elements of a group, read or written. */
struct place {
    int64_t begin;
    float *read;
    const float *written;
};

static zero_status copy_block(void *arg, const zero_state_block *block)
{
    const struct place *place = arg;
    int64_t at = block->range.begin - place->begin;
    memcpy(place->read ? place->read + at : block->master,
           place->read ? block->master : place->written + at,
           zero_range_bytes(block->range, ZERO_FP32));
    return ZERO_OK;
}

static zero_status copy_masters(zero_engine *e, int group, zero_range part, float *to)
{
    return zero_states_visit(&e->runner, group, part, ZERO_VISIT_READ, copy_block,
                             &(struct place){.begin = part.begin, .read = to});
}

/* Each owner copies its part, then all know whether any failed, then each broadcasts its
 * part. */
static zero_status collect(zero_trainer *t, const zero_tensor *tensor, copy_part *copy,
                           float *values)
{
    const zero_partition *p = &t->engine.schedule.groups[tensor->group].partition;
    zero_range all = zero_range_of_tensor(tensor);
    zero_range mine = zero_range_overlap(zero_partition_shard(p, t->comm->rank), all);
    zero_status st = ZERO_OK;
    if (!zero_range_is_empty(mine))
        st = copy(&t->engine, tensor->group, mine, values + (mine.begin - all.begin));
    ZERO_TRY(zero_agree(t->comm, st));
    for (int rank = 0; rank < t->comm->size; rank++) {
        zero_range part = zero_range_overlap(zero_partition_shard(p, rank), all);
        if (zero_range_is_empty(part)) continue;
        float *to = values + (part.begin - all.begin);
        ZERO_TRY(zero_comm_broadcast(t->comm, rank, to, zero_range_bytes(part, ZERO_FP32)));
    }
    return ZERO_OK;
}

zero_status zero_trainer_read(zero_trainer *trainer, const char *tensor, float *values)
{
    const zero_tensor *found = NULL;
    ZERO_TRY(zero_trainer_check(trainer));
    zero_status st = find_tensor(trainer, tensor, values, &found);
    ZERO_TRY(agree_on(trainer, st, &(struct access){.tensor = tensor}));
    ZERO_TRY(zero_engine_finish_update(&trainer->engine));
    return collect(trainer, found, copy_masters, values);
}

zero_status zero_trainer_gradient(zero_trainer *trainer, const char *tensor, float *values)
{
    const zero_tensor *found = NULL;
    ZERO_TRY(zero_trainer_check(trainer));
    zero_status st = find_tensor(trainer, tensor, values, &found);
    if (st == ZERO_OK && !trainer->engine.has_gradient)
        st = zero_fail(ZERO_ERR_INVALID,
                       "there is no gradient to read: call zero_trainer_compute() before; "
                       "a step that failed or was skipped has none");
    ZERO_TRY(agree_on(trainer, st, &(struct access){.tensor = tensor}));
    return collect(trainer, found, zero_engine_gradient, values);
}

/* ---- writing ---- */

static zero_status check_values(const zero_tensor *tensor, int64_t begin, int64_t end,
                                const float *values)
{
    int64_t n = tensor->rows * tensor->cols;
    ZERO_INVALID_IF(begin < 0 || end < begin || end > n,
                    "elements [%" PRId64 ", %" PRId64
                    ") of tensor '%s': expected a range within [0, %" PRId64 ")",
                    begin, end, tensor->name, n);
    for (int64_t i = 0; i < end - begin; i++)
        ZERO_INVALID_IF(!isfinite(values[i]),
                        "values[%" PRId64
                        "] for tensor '%s' is %g: expected finite numbers",
                        i, tensor->name, (double)values[i]);
    return ZERO_OK;
}

static zero_status write_own(zero_trainer *t, const zero_tensor *tensor, zero_range range,
                             const float *values)
{
    zero_range held = zero_states_held(&t->engine.schedule, tensor->group);
    zero_range all = {tensor->offset + range.begin, tensor->offset + range.end};
    return zero_states_visit(&t->engine.runner, tensor->group,
                             zero_range_overlap(held, all), ZERO_VISIT_CHANGE, copy_block,
                             &(struct place){.begin = all.begin, .written = values});
}

zero_status zero_trainer_write(zero_trainer *trainer, const char *tensor, int64_t begin,
                               int64_t end, const float *values)
{
    const zero_tensor *found = NULL;
    char hash[17] = "";
    ZERO_TRY(zero_trainer_check(trainer));
    zero_status st = find_tensor(trainer, tensor, values, &found);
    if (st == ZERO_OK) st = check_values(found, begin, end, values);
    if (st == ZERO_OK)
        zero_print(hash, "%016" PRIx64,
                   (uint64_t)XXH3_64bits(values, (size_t)(end - begin) * sizeof *values));
    /* After this vote no rank reads parameters of another. */
    ZERO_TRY(agree_on(trainer, st, &(struct access){tensor, begin, end, hash}));
    ZERO_TRY(zero_engine_settle(&trainer->engine));
    trainer->is_written = true;
    return zero_agree(trainer->comm,
                      write_own(trainer, found, (zero_range){begin, end}, values));
}

/* ---- the ledger ---- */

zero_status zero_trainer_count(zero_trainer *trainer, zero_trainer_ledger *ledger)
{
    zero_peak planned, measured;
    ZERO_TRY(zero_trainer_check(trainer));
    zero_engine *e = &trainer->engine;
    ZERO_TRY(zero_agree(trainer->comm, check_not_null(ledger, "the place for the ledger")));
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
    zero_volume now = zero_trainer_moved(trainer->comm), total = zero_traffic_total(&plan);
    l.planned_sent = total.bytes_sent;
    l.planned_received = total.bytes_received;
    l.measured_sent = now.bytes_sent - trainer->at_open.bytes_sent;
    l.measured_received = now.bytes_received - trainer->at_open.bytes_received;
    *ledger = l;
    return ZERO_OK;
}
