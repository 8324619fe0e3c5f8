#include "checkpoint/save.h"

#include "base/helper_thread.h"
#include "checkpoint/list.h"
#include "checkpoint/shard.h"
#include "data/tokenizer_file.h"
#include "state/replicas.h"
#include "state/states.h"

#define MEBIBYTE 0x1p20

/* One save in progress. Each rank writes one shard of a run without replicas. A rank's
 * piece is K neighbouring shards, and each of the K ranks that hold the piece writes one
 * of them:
 *
 *     N_d = 4, R = 2, K = 2     | shard 0 | shard 1 | shard 2 | shard 3 |
 *     pieces                    |      of ranks 0, 2 |      of ranks 1, 3 |
 *     written by                | rank 0  | rank 2  | rank 1  | rank 3  |
 *
 * So all ranks write the same amount, and a checkpoint does not depend on R. */
struct zero_checkpoint_write {
    zero_engine *e;
    zero_comm *comm;
    const zero_storage_dir *dir;
    const zero_tokenizer *tokenizer;
    zero_manifest manifest;
    char name[ZERO_CHECKPOINT_NAME], temporary_name[ZERO_CHECKPOINT_NAME];
    zero_storage_dir temporary;
    zero_shard_writer shard; /* this rank's */
    uint64_t bytes;          /* of all files */
    zero_digest_work *digest;
    pthread_t thread;
    bool is_beside, is_running; /* the thread */
    bool sums_copies;           /* it does, instead of a check before */
    uint64_t sum;
    zero_failure summed;
    atomic_bool has_hashed, has_ended;
    zero_failure failure; /* of writing the shard */
};

/* ---- shards ---- */

/* The number of the shard that this rank writes. T ranks share a model. */
static int own_shard(const zero_checkpoint_write *s)
{
    const zero_shard_place *at = &s->e->schedule.shard;
    const zero_plan_input *plan = &s->e->schedule.input;
    int T = plan->model->share.ranks, d = at->rank * at->replicas + at->replica;
    return (plan->pp_stage * plan->n_ranks + d) * T + s->comm->rank % T;
}

/* The rank that writes a shard. */
static int writer_of(const zero_checkpoint_write *s, int shard)
{
    const zero_shard_place *at = &s->e->schedule.shard;
    const int T = s->e->schedule.input.model->share.ranks, N = at->size * at->replicas,
              d = shard / T % N, before = shard / T - d;
    return (before + d % at->replicas * at->size + d / at->replicas) * T + shard % T;
}

static zero_status view(void *arg, int group, zero_range range, float *room,
                        zero_state_block *block)
{
    const zero_checkpoint_write *s = arg;
    zero_runner *r = &s->e->runner;
    return (s->is_beside ? zero_states_view_beside : zero_states_view)(r, group, range,
                                                                       room, block);
}
static int first_of(void *arg, int group)
{
    const zero_schedule *s = &((const zero_checkpoint_write *)arg)->e->schedule;
    return s->groups[group].stage * s->input.n_ranks;
}
_Static_assert(ZERO_EXTENT_MAX <= ZERO_STATES_VIEW, "a view holds an extent");

/* For the digest. */
static zero_status read_states(void *arg, int group, zero_range range,
                               zero_state_visitor *visit, void *visit_arg)
{
    const zero_checkpoint_write *s = arg;
    zero_state_block block;
    for (int64_t at = range.begin; at < range.end; at = block.range.end) {
        zero_range part = {at, zero_min(at + ZERO_STATES_VIEW, range.end)};
        ZERO_TRY(view(arg, group, part, s->shard.room, &block));
        ZERO_TRY(visit(visit_arg, &block));
    }
    return ZERO_OK;
}

static void *write_shard(void *arg)
{
    zero_checkpoint_write *s = arg;
    if (s->sums_copies)
        s->summed = zero_failure_keep(zero_replicas_sum_copies(&s->e->runner, &s->sum));
    zero_digest_hash(s->digest);
    atomic_store(&s->has_hashed, true);
    s->failure = zero_failure_keep(zero_shard_write(&s->shard, &s->temporary));
    atomic_store(&s->has_ended, true);
    return NULL;
}

static bool has_read(const void *arg, int group)
{
    const zero_checkpoint_write *s = arg;
    return atomic_load(&s->has_hashed) && zero_shard_has_read(&s->shard, group);
}

/* Lengths and checksums of all shards, on every rank. */
static zero_status tell_shards(zero_checkpoint_write *s)
{
    size_t size = (size_t)s->comm->size;
    ZERO_FREED uint64_t *words = NULL; /* the length, 32 digits */
    ZERO_TRY(zero_agree(s->comm, zero_new(&words, 5 * size, "words of shards")));
    uint64_t *mine = words + 5 * own_shard(s);
    mine[0] = s->shard.file.bytes;
    memcpy(mine + 1, s->shard.file.checksum, ZERO_CHECKSUM - 1);
    ZERO_TRY(zero_comm_or(s->comm, (int64_t)(5 * size), words));
    s->bytes = 0;
    for (size_t r = 0; r < size; r++) {
        zero_manifest_file *shard = &s->manifest.shards[r];
        shard->bytes = words[5 * r];
        memcpy(shard->checksum, words + 5 * r + 1, ZERO_CHECKSUM - 1);
        s->bytes += shard->bytes;
    }
    return ZERO_OK;
}

/* ---- rank 0 ---- */

/* A checkpoint must not be announced under a path where it is not. Leftovers of an
 * earlier save of this run are removed first. */
static zero_status make_temporary(zero_checkpoint_write *s)
{
    if (!zero_comm_is_root(s->comm)) return ZERO_OK;
    ZERO_TRY(zero_storage_check_place(s->dir));
    ZERO_INVALID_IF(zero_storage_has(s->dir, s->name), "%s/%s exists: nothing was written",
                    s->dir->path, s->name);
    uint64_t room;
    ZERO_TRY(zero_storage_room(s->dir, &room));
    ZERO_FAIL_IF(room < s->bytes, ZERO_ERR_ENV,
                 "%s: no space for a checkpoint: it takes %.1f MiB and %.1f MiB are free: "
                 "free some, or keep fewer (--keep)",
                 s->dir->path, (double)s->bytes / MEBIBYTE, (double)room / MEBIBYTE);
    ZERO_TRY(zero_checkpoint_temporary_name(s->dir, s->manifest.step, s->temporary_name));
    return zero_storage_make(s->dir, s->temporary_name, &s->temporary);
}

static zero_status enter_temporary(zero_checkpoint_write *s)
{
    if (zero_comm_is_root(s->comm)) return ZERO_OK;
    zero_status st = zero_storage_enter(s->dir, s->temporary_name, &s->temporary);
    if (st != ZERO_ERR_IO) return st;
    return zero_fail(ZERO_ERR_ENV,
                     "%s, which rank 0 has made: all nodes need the same directory",
                     zero_last_error());
}

/* `made` is the status of making the text. */
static zero_status put(zero_checkpoint_write *s, const char *name, zero_status made,
                       zero_bytes *text)
{
    if (made == ZERO_OK)
        made = zero_storage_put(&s->temporary, name, text->bytes, text->len);
    s->bytes += text->len;
    zero_bytes_destroy(text);
    return made;
}

static zero_status publish(zero_checkpoint_write *s)
{
    if (!zero_comm_is_root(s->comm)) return ZERO_OK;
    /* On several machines, directories of one name would each have some of the
     * shards. */
    char name[64];
    for (int r = 0; r < s->comm->size; r++) {
        zero_shard_name(r, s->comm->size, name);
        ZERO_FAIL_IF(!zero_storage_has(&s->temporary, name), ZERO_ERR_ENV,
                     "%s/%s is not seen from rank 0, though rank %d has written it: all "
                     "nodes need the same directory",
                     s->temporary.path, name, writer_of(s, r));
    }
    zero_bytes text = {0};
    zero_manifest *m = &s->manifest;
    m->has_tokenizer = s->tokenizer != NULL;
    if (m->has_tokenizer) {
        zero_status made = zero_tokenizer_write(s->tokenizer, &text);
        m->tokenizer.bytes = text.len;
        zero_checksum(text.bytes, text.len, m->tokenizer.checksum);
        ZERO_TRY(put(s, ZERO_TOKENIZER_NAME, made, &text));
    }
    ZERO_TRY(put(s, ZERO_MANIFEST_NAME, zero_manifest_write(m, &text), &text));
    /* The rename publishes the checkpoint, and the last sync makes that durable. If
     * that sync fails its durability is unknown, so the rename is undone. */
    ZERO_TRY(zero_storage_sync(&s->temporary));
    ZERO_TRY(zero_storage_rename(s->dir, s->temporary_name, s->name));
    zero_failure failure = zero_failure_keep(zero_storage_sync(s->dir));
    if (failure.status != ZERO_OK) {
        if (zero_storage_rename(s->dir, s->name, s->temporary_name) == ZERO_OK)
            return zero_failure_restore(&failure);
        return zero_fail(failure.status, "%s; and %s", failure.text, zero_last_error());
    }
    return zero_storage_check_place(s->dir);
}

/* ---- all of it ---- */

static zero_status describe(zero_checkpoint_write *s, const zero_checkpoint_input *in)
{
    zero_manifest *m = &s->manifest;
    memset(m->digest, '0', sizeof m->digest - 1); /* until the end */
    m->step = in->step;
    m->samples = in->samples;
    m->updates = s->e->adam_steps;
    m->skipped = s->e->skipped;
    m->seed = s->e->spec.seed;
    m->loss_scale = s->e->loss_scale;
    m->has_shape = in->shape != NULL;
    if (in->shape) m->shape = *in->shape;
    if (in->options) m->options = json_incref(in->options);
    if (in->kept) m->kept = json_incref(in->kept);
    zero_print(m->data, "%s", in->data ? in->data : "");
    zero_print(m->arithmetic, "%s", in->arithmetic ? in->arithmetic : "");
    /* The manifest's tensors are whole, whatever part of them this rank has. */
    const zero_plan_input *plan = &s->e->schedule.input;
    const zero_model *model = plan->model;
    ZERO_FREED zero_tensor *whole = NULL;
    ZERO_FREED int *stages = NULL;
    ZERO_TRY(zero_new(&whole, model->n_tensors, "tensors"));
    ZERO_TRY(zero_new(&stages, model->n_tensors, "tensors"));
    zero_state_layout layout = {plan->partition,
                                s->comm->size,
                                model->share.ranks,
                                model->share.slices,
                                plan->optimizer,
                                zero_plan_stages(plan),
                                stages};
    for (int i = 0; i < model->n_tensors; i++) {
        whole[i] = model->tensors[i];
        whole[i].rows = whole[i].whole_rows;
        whole[i].cols = whole[i].whole_cols;
        stages[i] = s->e->schedule.groups[whole[i].group].stage;
    }
    ZERO_TRY(zero_state_table_init(&m->table, model->n_tensors, whole, &layout));
    ZERO_TRY(zero_new(&m->shards, s->comm->size, "shards"));
    return zero_shard_prepare(&(zero_shard_source){own_shard(s), view, s}, m, &s->shard);
}

static void release(zero_checkpoint_write **write)
{
    zero_checkpoint_write *s = *write;
    if (!s) return;
    if (s->is_running) pthread_join(s->thread, NULL);
    s->e->runner.reader = (zero_states_reader){0};
    zero_digest_free(s->digest);
    zero_storage_close(&s->temporary);
    zero_shard_forget(&s->shard);
    zero_manifest_destroy(&s->manifest);
    free(s);
}

void zero_checkpoint_abandon(zero_checkpoint_write *write)
{
    release(&write);
}

/* The status of a part of the save; if it failed nothing is left. */
static zero_status clean_up(zero_checkpoint_write *s, zero_status st)
{
    bool has_nothing = s->temporary_name[0] == '\0';
    if (st == ZERO_OK || !zero_comm_is_root(s->comm) || has_nothing || st == ZERO_ERR_MPI ||
        st == ZERO_ERR_STALLED)
        return st;
    zero_failure failure = zero_failure_keep(st);
    zero_storage_close(&s->temporary);
    if (zero_storage_remove(s->dir, s->temporary_name) == ZERO_OK)
        return zero_failure_restore(&failure);
    return zero_fail(st, "%s; and its files cannot be removed: %s", failure.text,
                     zero_last_error());
}

/* A failure is told at the end, where no rank writes any more. */
static void start(zero_checkpoint_write *s)
{
    if (!s->is_beside) {
        write_shard(s);
        return;
    }
    int error = zero_helper_thread_start(&s->thread, 0, write_shard, s);
    s->is_running = error == 0;
    if (s->is_running) {
        s->e->runner.reader = (zero_states_reader){has_read, s};
        return;
    }
    s->failure = zero_failure_keep(zero_fail(
        ZERO_ERR_ENV, "cannot start a thread for a checkpoint: %s", strerror(error)));
    atomic_store(&s->has_ended, true);
}

static zero_status begin(zero_checkpoint_write *s, const zero_checkpoint_input *in)
{
    ZERO_TRY(s->sums_copies ? zero_engine_check_own(s->e) : zero_engine_check(s->e));
    ZERO_TRY(zero_agree_after_files(s->comm, describe(s, in)));
    ZERO_TRY(zero_states_digest_begin(
        &s->e->runner,
        &(zero_digest_source){.read = read_states, .arg = s, .first = first_of},
        &s->digest));
    ZERO_TRY(tell_shards(s));
    ZERO_TRY(zero_agree_after_files(s->comm, make_temporary(s)));
    ZERO_TRY(zero_comm_broadcast(s->comm, 0, s->temporary_name, sizeof s->temporary_name));
    ZERO_TRY(zero_agree_after_files(s->comm, enter_temporary(s)));
    start(s);
    return ZERO_OK;
}

zero_status zero_checkpoint_begin(zero_engine *e, const zero_storage_dir *dir,
                                  const zero_checkpoint_input *in, bool beside,
                                  zero_checkpoint_write **write)
{
    ZERO_AT_END(release) zero_checkpoint_write *s = NULL;
    ZERO_TRY(zero_agree(e->runner.comm, zero_new(&s, 1, "a checkpoint")));
    s->e = e;
    s->comm = e->runner.comm;
    s->dir = dir;
    s->tokenizer = in->tokenizer;
    s->is_beside = beside && zero_states_are_in_reach(&e->runner);
    s->sums_copies = s->is_beside && zero_is_checked(&e->schedule) &&
                     zero_replicas_are_in_reach(&e->runner);
    zero_checkpoint_name(in->step, s->name);
    ZERO_TRY(clean_up(s, begin(s, in)));
    ZERO_GIVE(write, s);
    return ZERO_OK;
}

bool zero_checkpoint_has_ended(const zero_checkpoint_write *s)
{
    return atomic_load(&s->has_ended);
}

static zero_status end(zero_checkpoint_write *s)
{
    if (s->is_running) pthread_join(s->thread, NULL);
    s->is_running = false;
    ZERO_TRY(zero_agree_after_files(s->comm, zero_failure_restore(&s->failure)));
    if (s->sums_copies) {
        ZERO_TRY(zero_engine_settle(s->e));
        ZERO_TRY(zero_replicas_judge(&s->e->runner, zero_failure_restore(&s->summed),
                                     s->sum, false));
    }
    zero_digest_work *digest = s->digest;
    s->digest = NULL;
    ZERO_TRY(zero_digest_end(digest, s->manifest.digest));
    ZERO_TRY(zero_agree_after_files(s->comm, zero_shard_finish(&s->shard)));
    ZERO_TRY(tell_shards(s));
    return zero_agree_after_files(s->comm, publish(s));
}

zero_status zero_checkpoint_end(zero_checkpoint_write *write, uint64_t *bytes)
{
    ZERO_AT_END(release) zero_checkpoint_write *s = write;
    zero_status st = clean_up(s, end(s));
    *bytes = s->bytes;
    return st;
}

zero_status zero_checkpoint_save(zero_engine *e, const zero_storage_dir *dir,
                                 const zero_checkpoint_input *in, uint64_t *bytes)
{
    zero_checkpoint_write *write;
    ZERO_TRY(zero_checkpoint_begin(e, dir, in, false, &write));
    return zero_checkpoint_end(write, bytes);
}

uint64_t zero_checkpoint_bytes(const zero_model *model, int optimizer)
{
    const uint64_t headers = 1 << 16;
    const int64_t n = model->n_params + zero_rule_total(optimizer, model);
    return sizeof(float) * (uint64_t)n + headers;
}
