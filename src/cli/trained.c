#include "cli/trained.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/model.h"
#include "cli/importing.h"
#include "data/tokenizer_find.h"
#include "io/file.h"

/* ---- opening ---- */

static zero_status find(const char *path, zero_trained *t)
{
    zero_hugging_face_found found;
    zero_failure failure =
        zero_failure_keep(zero_checkpoint_find(path, t->path, sizeof t->path));
    if (failure.status == ZERO_OK) return ZERO_OK;
    if (zero_hugging_face_find(path, &found) != ZERO_OK)
        return zero_failure_restore(&failure);
    /* True if there are weights or a config.json. Weights in a format that is not read
     * count, too, so that a message names the format. */
    char config[ZERO_STORAGE_FILE_PATH];
    zero_hugging_face_beside(&found, ZERO_HUGGING_FACE_CONFIG, config);
    if (!found.weights[0] && zero_path_look(config) == ZERO_PATH_OF_NOTHING)
        return zero_fail(failure.status, "%s, or " ZERO_HUGGING_FACE_MODEL, failure.text);
    t->is_imported = true;
    snprintf(t->path, sizeof t->path, "%s", path);
    return ZERO_OK;
}

static zero_status open_imported(zero_trained *t, zero_shape *shape)
{
    ZERO_TRY(zero_hugging_face_find(t->path, &t->found));
    ZERO_TRY(zero_hugging_face_find_shape(t->path, shape));
    if (shape->heads == 0)
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: the number of heads is not known: expected a " ZERO_HUGGING_FACE_CONFIG
            " beside the weights that says it (n_head)",
            t->path);
    ZERO_TRY(zero_model_build(shape, &t->model));
    ZERO_TRY(zero_hugging_face_open(t->path, &t->model, &t->file));
    return zero_hugging_face_keep(&t->found, &t->kept);
}

/* Drops the model that was read, so that another one can be. */
static void forget(zero_trained *t)
{
    zero_model_destroy(&t->model);
    zero_tokenizer_destroy(&t->tokenizer);
    json_decref(t->kept);
    t->kept = NULL;
}

struct opening {
    const zero_trained_user *user;
    zero_trained *t;
};

static zero_status use_checkpoint(void *arg, zero_checkpoint *c, const char *found)
{
    const struct opening *o = arg;
    (void)c; /* t->checkpoint */
    snprintf(o->t->path, sizeof o->t->path, "%s", found);
    zero_failure failure = zero_failure_keep(o->user->use(o->user->arg));
    if (failure.status != ZERO_OK) forget(o->t);
    return zero_failure_restore(&failure);
}

zero_status zero_trained_open(zero_comm *world, const zero_trained_user *user,
                              zero_trained *t)
{
    zero_shape shape;
    /* All ranks take what rank 0 has found. */
    ZERO_TRY(zero_agree(world, zero_comm_is_root(world) ? find(user->path, t) : ZERO_OK));
    ZERO_TRY(zero_comm_broadcast(world, 0, t->path, sizeof t->path));
    ZERO_TRY(zero_comm_broadcast(world, 0, &t->is_imported, sizeof t->is_imported));
    if (!t->is_imported) {
        struct opening o = {user, t};
        zero_checkpoint_user whose = {user->path, use_checkpoint, &o};
        return zero_checkpoint_use(world, &whose, &t->checkpoint);
    }
    ZERO_TRY(zero_agree_after_files(world, open_imported(t, &shape)));
    ZERO_TRY(zero_importing_compare_shapes(world, t->path, &shape));
    return user->use(user->arg);
}

/* ---- the model ---- */

static zero_status check_tokens(const zero_trained *t)
{
    if (t->tokenizer.vocab <= t->model.vocab) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: its tokenizer has %" PRId32 " tokens, its model only %" PRId64,
                     t->path, t->tokenizer.vocab, t->model.vocab);
}

static zero_status read_imported(zero_trained *t, bool with_tokenizer)
{
    char path[ZERO_STORAGE_PATH];
    t->type = ZERO_FP32;
    t->has_tokenizer = with_tokenizer && zero_tokenizer_beside(t->found.folder, path);
    return t->has_tokenizer ? zero_tokenizer_open(path, &t->tokenizer) : ZERO_OK;
}

static zero_status read_checkpoint(zero_trained *t)
{
    const zero_manifest *m = &t->checkpoint.manifest;
    t->type = m->loss_scale.type;
    t->has_tokenizer = m->has_tokenizer;
    if (m->kept) t->kept = json_incref(m->kept);
    ZERO_TRY(zero_checkpoint_describe(&t->checkpoint, &t->model));
    return t->has_tokenizer ? zero_checkpoint_tokenizer(&t->checkpoint, &t->tokenizer)
                            : ZERO_OK;
}

zero_status zero_trained_read(zero_trained *t, bool with_tokenizer)
{
    ZERO_TRY(t->is_imported ? read_imported(t, with_tokenizer) : read_checkpoint(t));
    return t->has_tokenizer ? check_tokens(t) : ZERO_OK;
}

zero_weights zero_trained_weights(zero_trained *t)
{
    return t->is_imported ? zero_hugging_face_weights(&t->file)
                          : zero_checkpoint_weights(&t->checkpoint);
}

zero_status zero_trained_check(zero_trained *t, zero_comm *world)
{
    return t->is_imported ? zero_importing_check_weights(world, &t->file) : ZERO_OK;
}

void zero_trained_close(zero_trained *t)
{
    forget(t);
    zero_checkpoint_close(&t->checkpoint);
    zero_hugging_face_close(&t->file);
    *t = (zero_trained){.is_imported = false};
}
