#include "checkpoint/load.h"

#include "checkpoint/list.h"
#include "checkpoint/together.h"

#define FOUND (ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME) /* bytes of a path */

/* ---- opening ---- */

zero_status zero_checkpoint_open_all(zero_comm *comm, const char *path, zero_checkpoint *c)
{
    const bool is_root = zero_comm_is_root(comm);
    ZERO_AT_END(zero_checkpoint_close) zero_checkpoint made = {0};
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_TRY(zero_agree_after_files(comm, is_root ? zero_checkpoint_open(path, NULL, &made)
                                                  : ZERO_OK));
    int64_t len = (int64_t)made.text.len;
    ZERO_TRY(zero_comm_broadcast(comm, 0, &len, sizeof len));
    ZERO_TRY(zero_agree(comm, is_root ? ZERO_OK : zero_bytes_reserve(&text, (size_t)len)));
    text.len = (size_t)len;
    ZERO_TRY(
        zero_comm_broadcast(comm, 0, is_root ? made.text.bytes : text.bytes, text.len));
    ZERO_TRY(zero_agree_after_files(
        comm, is_root ? ZERO_OK : zero_checkpoint_open(path, &text, &made)));
    ZERO_GIVE(c, made);
    return ZERO_OK;
}

zero_status zero_checkpoint_use(zero_comm *comm, const zero_checkpoint_user *user,
                                zero_checkpoint *c)
{
    const bool is_root = zero_comm_is_root(comm);
    for (;;) {
        char found[FOUND] = "";
        zero_status st = is_root ? zero_checkpoint_find(user->path, found, FOUND) : ZERO_OK;
        st = zero_agree_after_files(comm, st);
        if (st == ZERO_OK) st = zero_comm_broadcast(comm, 0, found, FOUND);
        if (st == ZERO_OK) st = zero_checkpoint_open_all(comm, found, c);
        if (st == ZERO_OK) {
            st = user->use(user->arg, c, found);
            if (st != ZERO_OK) zero_checkpoint_close(c);
        }
        zero_failure failure = zero_failure_keep(st);
        bool is_removed =
            st == ZERO_ERR_IO && is_root && zero_checkpoint_is_removed(user->path, found);
        if (st == ZERO_ERR_IO) ZERO_TRY(zero_comm_any(comm, is_removed, &is_removed));
        if (!is_removed) return zero_failure_restore(&failure);
    }
}

/* ---- loading ---- */

static zero_status take_block(void *arg, const zero_state_block *block)
{
    const zero_state_block *from = arg;
    for (int p = 0; p < ZERO_STATES && block->part[p]; p++)
        memcpy(block->part[p], from->part[p] + (block->range.begin - from->range.begin),
               (size_t)zero_range_len(block->range) * sizeof(float));
    return ZERO_OK;
}

static zero_status receive(void *arg, int group, const zero_state_block *states)
{
    zero_state_block from = *states;
    return zero_states_visit(arg, group, from.range, ZERO_VISIT_FILL, take_block, &from);
}

static zero_status compare_tensors(const zero_model *model, int optimizer,
                                   const zero_checkpoint *c)
{
    const int then = c->manifest.table.layout.optimizer;
    int n = c->manifest.table.n_tensors;
    ZERO_INVALID_IF(
        then != optimizer,
        "%s has the states of %s, and this run makes steps of %s: give --optimizer "
        "%s, or begin with its weights alone (--init-from)",
        c->dir.path, zero_rule_name_at(then), zero_rule_name_at(optimizer),
        zero_rule_name_at(then));
    for (int i = 0; i < n && i < model->n_tensors; i++) {
        const zero_tensor *theirs = &c->manifest.table.tensors[i];
        const zero_tensor *ours = &model->tensors[i];
        ZERO_INVALID_IF(
            !zero_same_text(theirs->name, ours->name) || theirs->rows != ours->whole_rows ||
                theirs->cols != ours->whole_cols || theirs->group != ours->group,
            "%s is of another model: its tensor %d is '%s' [%" PRId64 ", %" PRId64
            "] of group %d, this model's '%s' [%" PRId64 ", %" PRId64 "] of group %d",
            c->dir.path, i, theirs->name, theirs->rows, theirs->cols, theirs->group,
            ours->name, ours->whole_rows, ours->whole_cols, ours->group);
    }
    ZERO_INVALID_IF(n != model->n_tensors,
                    "%s is of another model: it has %d tensors, this model %d", c->dir.path,
                    n, model->n_tensors);
    return ZERO_OK;
}

/* No rank needs a shard without parameters, but its header is checked, too. */
static zero_status check_rest(const zero_comm *comm, zero_checkpoint *c)
{
    const zero_shard_reader *shard;
    for (int r = comm->rank; r < c->manifest.table.layout.n_ranks; r += comm->size)
        ZERO_TRY(zero_checkpoint_shard(c, r, &shard));
    if (!zero_comm_is_root(comm) || !c->manifest.has_tokenizer) return ZERO_OK;
    ZERO_AT_END(zero_tokenizer_destroy) zero_tokenizer tokenizer = {0};
    return zero_checkpoint_tokenizer(c, &tokenizer);
}

zero_status zero_checkpoint_load(zero_engine *e, zero_checkpoint *c)
{
    ZERO_TRY(zero_engine_settle(e));
    zero_comm *comm = e->runner.comm;
    const zero_model *model = e->schedule.input.model;
    ZERO_FREED zero_range *wishes = NULL;
    zero_status st = compare_tensors(model, e->schedule.input.optimizer, c);
    if (st == ZERO_OK) st = zero_new(&wishes, model->n_groups, "groups");
    for (int g = 0; st == ZERO_OK && g < model->n_groups; g++)
        wishes[g] = zero_states_held(&e->schedule, g);
    ZERO_TRY(zero_checkpoint_fetch_together(
        comm, st, c, model, wishes, &(zero_checkpoint_receiver){receive, &e->runner}));
    ZERO_TRY(zero_agree_after_files(comm, check_rest(comm, c)));
    e->adam_steps = c->manifest.updates;
    e->skipped = c->manifest.skipped;
    if (c->manifest.loss_scale.type == e->loss_scale.type)
        e->loss_scale = c->manifest.loss_scale;
    ZERO_TRY(zero_engine_publish(e));
    char digest[ZERO_CHECKSUM];
    ZERO_TRY(zero_engine_digest(e, digest));
    ZERO_FORMAT_IF(!zero_same_text(digest, c->manifest.digest),
                   "%s: the loaded state has the digest %s, but the saved one had %s",
                   c->dir.path, digest, c->manifest.digest);
    return ZERO_OK;
}
