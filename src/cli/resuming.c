/* zero_saving_find(), zero_saving_open(): a run opens its directory of checkpoints and
 * resumes from it. */
#include "cli/saving.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "cli/notes.h"
#include "cli/resumed_options.h"
#include "report/text.h"

/* ---- resuming ---- */

static zero_status load_into(zero_session *s, zero_checkpoint *c)
{
    zero_saving *saving = &s->saving;
    const zero_manifest *m = &c->manifest;
    bool has_new_data = zero_resumed_options_has_new_data(s, m);
    ZERO_TRY(zero_agree(&s->world, zero_resumed_options_check(s, m)));
    int64_t step = c->manifest.step, B = s->config.global_batch;
    if (step > INT64_MAX / 2 / B)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: step %" PRId64 " x --global-batch %" PRId64
                         " overflows the sample counter",
                         c->dir.path, step, B);
    ZERO_TRY(zero_checkpoint_load(&s->engine, c));
    if (m->kept) { /* the next checkpoints keep what this one does */
        json_decref(s->importing.kept);
        s->importing.kept = json_incref(m->kept);
    }
    saving->start = saving->saved = m->step;
    zero_loader_resume(&s->loader, m->step, has_new_data ? 0 : m->samples);
    /* Other data begin with their first sample. */
    snprintf(saving->from, sizeof saving->from,
             "step %" PRId64 " of %d rank%s, digest %s%s", m->step, m->table.layout.n_ranks,
             m->table.layout.n_ranks == 1 ? "" : "s", m->digest,
             has_new_data ? "; on other data, from their first sample" : "");
    zero_resumed_options_tell(s, m);
    return ZERO_OK;
}

/* Takes what a run needs before it can be built. The tokenizer makes its tokens. */
static zero_status take_from(zero_session *s, zero_checkpoint *c)
{
    zero_status st = ZERO_OK;
    if (zero_comm_is_root(&s->world) && c->manifest.has_tokenizer) {
        zero_tokenizer tokenizer;
        st = zero_checkpoint_tokenizer(c, &tokenizer);
        if (st == ZERO_OK) zero_tokenizer_destroy(&tokenizer);
    }
    ZERO_TRY(zero_agree_after_files(&s->world, st));
    return zero_agree(&s->world, zero_resumed_options_take(s, &c->manifest));
}

typedef zero_status with_checkpoint(zero_session *s, zero_checkpoint *c);

static zero_status open_step(zero_session *s, int64_t step, with_checkpoint *use)
{
    char name[ZERO_CHECKPOINT_NAME], *path = s->saving.resumed.path;
    zero_checkpoint c = {0};
    zero_checkpoint_name(step, name);
    snprintf(path, sizeof s->saving.resumed.path, "%.*s/%s",
             ZERO_STORAGE_PATH - ZERO_CHECKPOINT_NAME - 1, s->config.checkpoint, name);
    zero_status st = zero_checkpoint_open_all(&s->world, path, &c);
    if (st == ZERO_OK) st = use(s, &c);
    zero_checkpoint_close(&c);
    return st;
}

/* A checkpoint that does not load ends the run, unless an older one may replace it. */
static zero_status go_back(zero_session *s, zero_status st, const int64_t *steps, int i)
{
    if (s->config.resume_older && i > 0) {
        if (zero_comm_is_root(&s->world))
            fprintf(stderr, "zero: warning: %s; going back to step %" PRId64 "\n",
                    zero_last_error(), steps[i - 1]);
        return ZERO_OK;
    }
    if (s->config.resume_older)
        return zero_fail(st, "%s; and there is no older checkpoint", zero_last_error());
    if (i == 0) return st;
    return zero_fail(st, "%s; --resume-older goes back to step %" PRId64, zero_last_error(),
                     steps[i - 1]);
}

/* Uses checkpoint `at`, or an older one if it is broken and the user allows that. */
static zero_status use_newest(zero_session *s, with_checkpoint *use)
{
    const int64_t *steps = s->saving.directory.steps;
    int *at = &s->saving.resumed.at;
    for (zero_status st; (st = open_step(s, steps[*at], use)) != ZERO_OK; --*at) {
        if (st != ZERO_ERR_IO && st != ZERO_ERR_FORMAT) return st;
        ZERO_TRY(go_back(s, st, steps, *at));
    }
    return ZERO_OK;
}

/* ---- opening ---- */

static zero_status open_directory(zero_session *s, zero_directory_wish wish)
{
    zero_directory_opening how = {
        .wish = wish, .patience = ZERO_LOCK_PATIENCE, .listener = zero_notes_listener()};
    return zero_checkpoint_directory_open(&s->world, s->config.checkpoint, &how,
                                          &s->saving.directory);
}

zero_status zero_saving_find(zero_session *s)
{
    zero_saving *saving = &s->saving;
    *saving = (zero_saving){.saved = -1};
    if (!zero_config_resumes(&s->config)) return ZERO_OK;
    ZERO_TRY(open_directory(s, ZERO_DIRECTORY_MUST_EXIST));
    saving->resumed.at = saving->directory.n - 1;
    saving->resumed.is_there = saving->directory.n > 0;
    if (saving->resumed.is_there) return use_newest(s, take_from);
    snprintf(saving->from, sizeof saving->from, "from nothing: there is no checkpoint yet");
    if (!s->config.new_data) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--new-data continues a checkpoint, and %s holds none: leave it out",
                     s->config.checkpoint);
}

static zero_status refuse_to_overwrite(const zero_config *c, const int64_t *steps, int n)
{
    if (n == 0 || zero_config_resumes(c)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--checkpoint %s holds checkpoints up to step %" PRId64
                     ": continue with --resume, or give another directory",
                     c->checkpoint, steps[n - 1]);
}

static zero_status check_room(const zero_session *s)
{
    uint64_t room, needed = zero_checkpoint_bytes(&s->model);
    ZERO_TRY(zero_storage_room(&s->saving.directory.dir, &room));
    if (room >= needed) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_ENV,
        "--checkpoint %s: a checkpoint of this model takes %s, and %s are free there",
        s->config.checkpoint, ZERO_BYTES(needed), ZERO_BYTES(room));
}

zero_status zero_saving_open(zero_session *s)
{
    zero_saving *saving = &s->saving;
    saving->attempt = zero_clock_seconds();
    if (!s->config.checkpoint) return ZERO_OK;
    zero_corpus_checksum(&s->dataset.corpus, saving->data);
    if (!zero_config_resumes(&s->config))
        ZERO_TRY(open_directory(s, ZERO_DIRECTORY_MAY_BE_NEW));
    const zero_checkpoint_directory *d = &s->saving.directory;
    ZERO_TRY(zero_agree(&s->world, refuse_to_overwrite(&s->config, d->steps, d->n)));
    ZERO_TRY(zero_agree_after_files(&s->world, zero_comm_is_root(&s->world) ? check_room(s)
                                                                            : ZERO_OK));
    if (!saving->resumed.is_there) return ZERO_OK;
    ZERO_TRY(use_newest(s, load_into));
    /* Checkpoints newer than the loaded one are renamed, so that their steps can be
     * saved again. */
    int from = saving->resumed.at + 1;
    zero_status st = ZERO_OK;
    for (int i = from;
         st == ZERO_OK && i < saving->directory.n && zero_comm_is_root(&s->world); i++)
        st =
            zero_checkpoint_set_aside(&s->saving.directory.dir, saving->directory.steps[i]);
    return zero_agree_after_files(&s->world, st);
}
