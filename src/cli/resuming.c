/* zero_saving_open(): a run opens its directory of checkpoints and resumes from it. */
#include "cli/saving.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/legible.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "cli/notes.h"

static bool resumes(const zero_config *c)
{
    return c->resume || c->resume_older;
}

/* ---- is it the same run? ---- */

/* Appends an option's value now, and that of the saved run, to a list of differences. */
static void differ(char *list, size_t size, const char *name, const char *now,
                   const char *then)
{
    size_t len = strlen(list);
    snprintf(list + len, size - len, "%s--%s %s (saved: %s)", len > 0 ? ", " : "", name,
             now, then);
}

static void differ_whole(char *list, size_t size, const char *name, int64_t now,
                         int64_t then)
{
    char a[32], b[32];
    snprintf(a, sizeof a, "%" PRId64, now);
    snprintf(b, sizeof b, "%" PRId64, then);
    if (now != then) differ(list, size, name, a, b);
}

static void list_shape(const zero_gpt2_shape *now, const zero_gpt2_shape *then, char *list,
                       size_t size)
{
    differ_whole(list, size, "layers", now->layers, then->layers);
    differ_whole(list, size, "hidden", now->hidden, then->hidden);
    differ_whole(list, size, "heads", now->heads, then->heads);
    differ_whole(list, size, "seq", now->seq, then->seq);
    differ_whole(list, size, "vocab", now->vocab, then->vocab);
}

/* Options that must not change: with another shape nothing fits, with another seed or other data
 * it is another run. */
static zero_status compare(const zero_session *s, const zero_checkpoint *c)
{
    const zero_manifest *m = &c->manifest;
    char list[512] = "";
    if (!m->has_gpt2)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s holds another program's model, not a GPT-2 of zero train",
                         c->dir.path);
    list_shape(s->model.shape, &m->gpt2, list, sizeof list);
    differ_whole(list, sizeof list, "seed", s->config.seed, m->seed);
    if (list[0] == '\0' && strcmp(s->saving.data, m->data) != 0)
        snprintf(list, sizeof list, "--data %.200s holds other tokens for training",
                 s->config.data);
    if (list[0] == '\0') return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "cannot resume %s: these options differ from the saved run: %s; restore "
        "them, or give another --checkpoint",
        c->dir.path, list);
}

static bool was(const json_t *options, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(options, name));
    return text && strcmp(text, value) == 0;
}

static zero_status check_same(const zero_checkpoint *c, const char *name, const char *saved,
                              int64_t value)
{
    char now[32];
    snprintf(now, sizeof now, "%" PRId64, value);
    if (strcmp(saved, now) == 0) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "cannot resume %s: it was saved with --reproducible --%s %.20s, and this run has "
        "--%s %s, which adds in another order and gives other bits; give --%s %.20s, or "
        "resume without --reproducible",
        c->dir.path, name, saved, name, now, name, saved);
}

static const char *saved_as(const json_t *options, const char *name, const char *absent)
{
    const char *text = json_string_value(json_object_get(options, name));
    return text ? text : absent;
}

/* A reproducible run adds gradients in the order that its micro batch gives, and products in the
 * order of its slices: with others it would end with another digest than it promised. Runs that do
 * not name slices were saved before there were any. */
static zero_status check_order(const zero_session *s, const zero_checkpoint *c)
{
    const json_t *then = c->manifest.options;
    const char *micro = saved_as(then, "micro-batch", NULL);
    if (!s->config.reproducible || !was(then, "reproducible", "on")) return ZERO_OK;
    if (micro) ZERO_TRY(check_same(c, "micro-batch", micro, s->config.micro_batch));
    return check_same(c, "tp-slices", saved_as(then, "tp-slices", "1"),
                      s->config.tp.slices);
}

/* Options that may change, but not unnoticed. */
static void list_changes(zero_session *s, const zero_manifest *m)
{
    json_t *now = zero_run_options_identity(&s->config);
    char *list = s->saving.changes;
    const size_t size = sizeof s->saving.changes;
    const char *key;
    json_t *value;
    if (s->world.size != m->table.layout.n_ranks)
        snprintf(list, size, "ranks %d (saved: %d)", s->world.size,
                 m->table.layout.n_ranks);
    json_object_foreach(now, key, value)
    {
        const json_t *then = json_object_get(m->options, key);
        if (!m->options || json_equal(value, then)) continue;
        if (!then && zero_run_options_is_as_ever(key, json_string_value(value))) continue;
        differ(list, size, key, json_string_value(value),
               json_is_string(then) ? json_string_value(then) : "its default");
    }
    json_object_foreach(m->options, key, value)
    {
        if (!json_object_get(now, key))
            differ(list, size, key, "at its default", json_string_value(value));
    }
    json_decref(now);
}

static void warn_of_arithmetic(const zero_session *s, const zero_manifest *m)
{
    char now[256];
    zero_run_view view = zero_session_view(s);
    zero_show_arithmetic(&view, now, sizeof now);
    if (zero_comm_is_root(&s->world) && strcmp(now, m->arithmetic) != 0)
        fprintf(
            stderr,
            "zero: warning: bits may differ from the run that was saved, which had: %s\n",
            ZERO_SHOWN(m->arithmetic));
}

/* Another number of ranks that share the model changes no bits, but another order of sums does. */
static void warn_of_slices(const zero_session *s, const zero_manifest *m)
{
    int now = s->engine.schedule.input.model->share.slices, then = m->table.layout.slices;
    if (now == then || !zero_comm_is_root(&s->world)) return;
    fprintf(stderr,
            "zero: warning: other sums: this run adds along %d slice%s, the one that was "
            "saved along %d, so bits differ from a run that never stopped; give "
            "--tp-slices %d\n",
            now, now == 1 ? "" : "s", then, then);
}

/* ---- resuming ---- */

static zero_status check_cursor(const zero_session *s, const zero_checkpoint *c)
{
    int64_t step = c->manifest.step, B = s->config.global_batch;
    if (step <= INT64_MAX / 2 / B) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: step %" PRId64 " x --global-batch %" PRId64
                     " overflows the sample counter",
                     c->dir.path, step, B);
}

/* The next checkpoints keep what this one does. */
static zero_status take_kept(zero_session *s, zero_checkpoint *c)
{
    zero_importing *im = &s->importing;
    bool needs_tokenizer = zero_comm_is_root(&s->world) && c->manifest.has_tokenizer &&
                           !s->dataset.corpus.tokenizer && im->of_tokens.vocab == 0;
    if (c->manifest.kept) {
        json_decref(im->kept);
        im->kept = json_incref(c->manifest.kept);
    }
    zero_status st =
        needs_tokenizer ? zero_checkpoint_tokenizer(c, &im->of_tokens) : ZERO_OK;
    return zero_agree_after_files(&s->world, st);
}

static zero_status load_into(zero_session *s, zero_checkpoint *c)
{
    zero_saving *saving = &s->saving;
    const zero_manifest *m = &c->manifest;
    ZERO_TRY(zero_agree(&s->world, compare(s, c)));
    ZERO_TRY(zero_agree(&s->world, check_order(s, c)));
    ZERO_TRY(check_cursor(s, c));
    ZERO_TRY(zero_checkpoint_load(&s->engine, c));
    ZERO_TRY(take_kept(s, c));
    saving->start = saving->saved = m->step;
    zero_loader_resume(&s->loader, m->step, m->samples);
    snprintf(saving->from, sizeof saving->from, "step %" PRId64 " of %d rank%s, digest %s",
             m->step, m->table.layout.n_ranks, m->table.layout.n_ranks == 1 ? "" : "s",
             m->digest);
    list_changes(s, m);
    warn_of_arithmetic(s, m);
    warn_of_slices(s, m);
    return ZERO_OK;
}

static zero_status load_step(zero_session *s, int64_t step)
{
    char name[ZERO_CHECKPOINT_NAME], path[ZERO_STORAGE_PATH + ZERO_CHECKPOINT_NAME];
    zero_checkpoint c = {0};
    zero_checkpoint_name(step, name);
    snprintf(path, sizeof path, "%s/%s", s->config.checkpoint, name);
    zero_status st = zero_checkpoint_open_all(&s->world, path, &c);
    if (st == ZERO_OK) st = load_into(s, &c);
    zero_checkpoint_close(&c);
    return st;
}

static bool is_broken(zero_status st)
{
    return st == ZERO_ERR_IO || st == ZERO_ERR_FORMAT;
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

/* Checkpoints newer than the loaded one are renamed, so that their steps can be saved again. */
static zero_status set_aside(zero_session *s, const int64_t *steps, int from, int n)
{
    zero_status st = ZERO_OK;
    for (int i = from; st == ZERO_OK && i < n && zero_comm_is_root(&s->world); i++)
        st = zero_checkpoint_set_aside(&s->saving.directory.dir, steps[i]);
    return zero_agree_after_files(&s->world, st);
}

static zero_status load_newest(zero_session *s, const int64_t *steps, int n)
{
    int i = n - 1;
    for (zero_status st; (st = load_step(s, steps[i])) != ZERO_OK; i--) {
        if (!is_broken(st)) return st;
        ZERO_TRY(go_back(s, st, steps, i));
    }
    return set_aside(s, steps, i + 1, n);
}

/* ---- opening ---- */

static zero_status refuse_to_overwrite(const zero_config *c, const int64_t *steps, int n)
{
    if (n == 0 || resumes(c)) return ZERO_OK;
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
    return zero_fail(ZERO_ERR_ENV,
                     "--checkpoint %s: a checkpoint of this model takes %.1f MiB, and %.1f "
                     "MiB are free there",
                     s->config.checkpoint, (double)needed / 0x1p20, (double)room / 0x1p20);
}

static zero_status check_directory(zero_session *s)
{
    const zero_checkpoint_directory *d = &s->saving.directory;
    ZERO_TRY(zero_agree(&s->world, refuse_to_overwrite(&s->config, d->steps, d->n)));
    return zero_agree_after_files(&s->world,
                                  zero_comm_is_root(&s->world) ? check_room(s) : ZERO_OK);
}

static zero_status load(zero_session *s)
{
    const zero_checkpoint_directory *d = &s->saving.directory;
    if (!resumes(&s->config)) return ZERO_OK;
    if (d->n > 0) return load_newest(s, d->steps, d->n);
    snprintf(s->saving.from, sizeof s->saving.from,
             "from nothing: there is no checkpoint yet");
    return s->engine.spec.awaits_states ? zero_engine_draw(&s->engine) : ZERO_OK;
}

zero_status zero_saving_open(zero_session *s)
{
    const zero_config *c = &s->config;
    s->saving = (zero_saving){.saved = -1, .attempt = zero_clock_seconds()};
    if (!c->checkpoint) return ZERO_OK;
    zero_corpus_checksum(&s->dataset.corpus, s->saving.data);
    zero_directory_opening how = {.patience = ZERO_DIRECTORY_PATIENCE,
                                  .listener = zero_notes_listener()};
    how.wish = resumes(c) ? ZERO_DIRECTORY_MUST_EXIST : ZERO_DIRECTORY_MAY_BE_NEW;
    ZERO_TRY(zero_checkpoint_directory_open(&s->world, c->checkpoint, &how,
                                            &s->saving.directory));
    zero_status st = check_directory(s);
    if (st == ZERO_OK) st = load(s);
    return st == ZERO_OK ? ZERO_OK : zero_saving_close(s, st);
}
