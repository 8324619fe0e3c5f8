#include "cli/saving.h"

#include "base/clock.h"
#include "base/helper_thread.h"
#include "base/legible.h"
#include "checkpoint/list.h"
#include "checkpoint/load.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/requests.h"
#include "report/text.h"

/* Rank 0's. */
static void *remove_older(void *arg)
{
    zero_session *s = arg;
    zero_checkpoint_directory *d = &s->saving.directory;
    zero_listener listener = zero_notes_listener();
    if (zero_checkpoint_prune(&d->dir, s->saving.saved, s->config.keep, &d->stuck,
                              &listener) != ZERO_OK)
        zero_listener_tell(&listener, "old checkpoints stay: %s", zero_last_error());
    return NULL;
}

static void join_remover(zero_session *s)
{
    if (s->saving.is_removing) pthread_join(s->saving.remover, NULL);
    s->saving.is_removing = false;
}

/* Removing may take long, and the next step allows the other ranks less patience than this
 * wait. */
static zero_status await_removal(zero_session *s)
{
    join_remover(s);
    return zero_comm_barrier_after_files(&s->world);
}

static zero_status begin(zero_session *s, int64_t step)
{
    zero_saving *saving = &s->saving;
    ZERO_TRY(await_removal(s));
    saving->begun = zero_clock_seconds();
    char bits[256];
    zero_record_bits(s, bits, sizeof bits);
    json_auto_t *options = zero_run_options_identity(&s->config);
    zero_checkpoint_input in = {.step = step,
                                .samples = zero_loader_used(&s->loader, step),
                                .data = s->saving.data,
                                .arithmetic = bits,
                                .shape = s->model.shape,
                                .tokenizer = s->dataset.corpus.tokenizer,
                                .options = options,
                                .kept = s->importing.kept};
    saving->writing = step;
    return zero_checkpoint_begin(&s->engine, &saving->directory.dir, &in,
                                 !s->config.save_sync, &saving->write);
}

/* Publishes the save in flight. */
static zero_status end(zero_session *s)
{
    uint64_t bytes;
    const int64_t step = s->saving.writing;
    zero_checkpoint_write *write = s->saving.write;
    s->saving.write = NULL;
    ZERO_TRY(zero_checkpoint_end(write, &bytes));
    s->saving.saved = step;
    s->saving.count++;
    if (zero_comm_is_root(&s->world)) {
        double seconds = zero_clock_seconds() - s->saving.begun;
        char name[ZERO_CHECKPOINT_NAME];
        zero_checkpoint_name(step, name);
        zero_progress_view_erase(&s->progress);
        printf("checkpoint: step %" PRId64 " in %s/%s, %s, %.3f s\n", step,
               ZERO_SHOWN(s->config.checkpoint), name, ZERO_BYTES(bytes), seconds);
        fflush(stdout);
    }
    /* Older checkpoints may go once a newer one is announced. */
    bool removes = zero_comm_is_root(&s->world);
    s->saving.is_removing =
        removes && zero_helper_thread_start(&s->saving.remover, 0, remove_older, s) == 0;
    if (removes && !s->saving.is_removing) remove_older(s);
    return ZERO_OK;
}

#define BY_CLOCK (INT64_MAX / 2) /* added to a number of requests, which is small */

/* One request reaches ranks at different moments. All ranks act after the step in which any
 * rank saw it. A rank may see it later: each counts the requests, so that none is answered
 * twice. */
static zero_status agree_on_request(zero_session *s, zero_request *request)
{
    zero_saving *saving = &s->saving;
    int64_t most;
    *request = zero_requests_take();
    if (saving->output.status != ZERO_OK) *request = ZERO_REQUEST_STOP;
    saving->asked += *request == ZERO_REQUEST_SAVE;
    /* Rank 0's clock decides, because clocks differ. */
    double limit = 60.0 * s->config.save_minutes;
    bool is_late = zero_comm_is_root(&s->world) && limit > 0.0 &&
                   zero_clock_seconds() - saving->attempt >= limit;
    int64_t mine = saving->asked + (is_late ? BY_CLOCK : 0);
    ZERO_TRY(
        zero_comm_most(&s->world, *request == ZERO_REQUEST_STOP ? INT64_MAX : mine, &most));
    bool is_by_clock = most >= BY_CLOCK && most < INT64_MAX;
    if (is_by_clock) most -= BY_CLOCK;
    *request = most == INT64_MAX                        ? ZERO_REQUEST_STOP
               : is_by_clock || most > saving->answered ? ZERO_REQUEST_SAVE
                                                        : ZERO_REQUEST_NONE;
    if (most < INT64_MAX) saving->answered = zero_max(saving->answered, most);
    return ZERO_OK;
}

zero_status zero_saving_check_output(zero_session *s)
{
    zero_failure *kept = &s->saving.output;
    if (kept->status != ZERO_OK) return ZERO_OK;
    zero_status st = zero_output_check();
    if (st == ZERO_OK || !s->config.checkpoint) return st;
    *kept = zero_failure_keep(st);
    return ZERO_OK;
}

/* A save that failed ends the run, or is a warning. */
static zero_status bear_failure(zero_session *s, int64_t step, zero_status st)
{
    zero_saving *saving = &s->saving;
    /* A job asked to stop is about to be ended: a save that failed now may work before
     * that. */
    if (saving->stop_at != 0) {
        saving->stop_at = step + saving->stop_gap;
        saving->stop_gap *= 2;
    }
    if (st != ZERO_ERR_ENV && st != ZERO_ERR_IO && st != ZERO_ERR_NOMEM &&
        st != ZERO_ERR_INVALID)
        return st;
    /* A later checkpoint may find space; the last one has none after it. */
    ZERO_FAIL_IF(step == s->config.steps || s->config.save_required, ZERO_ERR_ENV,
                 "the checkpoint of step %" PRId64 " failed: %s", step, zero_last_error());
    zero_progress_view_erase(&s->progress);
    if (zero_comm_is_root(&s->world))
        fprintf(stderr,
                "zero: warning: the checkpoint of step %" PRId64
                " failed: %s; the run continues\n",
                step, zero_last_error());
    return ZERO_OK;
}

/* Publishes the save in flight, if there is one; unless it `must`, only if all ranks have
 * written it. */
static zero_status end_earlier(zero_session *s, bool must)
{
    zero_saving *saving = &s->saving;
    if (!saving->write) return ZERO_OK;
    int64_t writing = !zero_checkpoint_has_ended(saving->write);
    if (!must) ZERO_TRY(zero_comm_most(&s->world, writing, &writing));
    if (!must && writing) return ZERO_OK;
    zero_status st = end(s);
    return st == ZERO_OK ? ZERO_OK : bear_failure(s, saving->writing, st);
}

/* Saves what the request, or the step, asks for. */
static zero_status save(zero_session *s, int64_t step, zero_request request)
{
    const zero_config *c = &s->config;
    zero_saving *saving = &s->saving;
    if (request == ZERO_REQUEST_STOP) {
        saving->stop_at = step;
        saving->stop_gap = 1;
    }
    bool is_due = request != ZERO_REQUEST_NONE || step == c->steps ||
                  (c->save_every > 0 && step % c->save_every == 0) ||
                  (saving->stop_at > 0 && step >= saving->stop_at);
    bool is_last = step == c->steps || saving->stop_at > 0;
    ZERO_TRY(end_earlier(s, is_due));
    if (!is_due) return ZERO_OK;
    zero_status st = saving->saved == step ? ZERO_OK : begin(s, step);
    if (st == ZERO_OK && saving->write && (is_last || c->save_sync)) {
        st = end(s);
        if (st == ZERO_OK) st = await_removal(s);
    }
    saving->attempt = zero_clock_seconds();
    if (st != ZERO_OK) return bear_failure(s, step, st);
    if (saving->stop_at == 0 || step == c->steps) return ZERO_OK;
    /* The output cannot be written where its reader, such as head or a terminal, has
     * gone. */
    const zero_failure *output = &saving->output;
    if (output->status != ZERO_OK)
        st = zero_fail(output->status,
                       "%s; the run stopped after step %" PRId64 " of %" PRId64
                       ", which is saved in %s; --resume continues",
                       output->text, step, c->steps, c->checkpoint);
    ZERO_TRY(zero_agree(&s->world, st));
    return zero_fail(ZERO_STOPPED,
                     "stopped on request after step %" PRId64 " of %" PRId64
                     ", which is saved in %s; --resume continues",
                     step, c->steps, c->checkpoint);
}

zero_status zero_saving_step(zero_session *s, int64_t step)
{
    zero_request request;
    if (!s->config.checkpoint) {
        /* Refuses requests: there is no --checkpoint. */
        if (zero_requests_take() != ZERO_REQUEST_NONE && zero_comm_is_root(&s->world)) {
            zero_progress_view_erase(&s->progress);
            fprintf(stderr, "zero: warning: asked by a signal for a checkpoint, but there "
                            "is no --checkpoint; the run continues\n");
        }
        return ZERO_OK;
    }
    ZERO_TRY(agree_on_request(s, &request));
    double start = zero_clock_seconds();
    zero_status st = save(s, step, request);
    s->saving.waited += zero_clock_seconds() - start;
    return st;
}

zero_status zero_saving_rescue(zero_session *s, zero_status st)
{
    const zero_failure kept = zero_failure_keep(st);
    bool has_all = kept.is_agreed || st == ZERO_ERR_DIVERGED || st == ZERO_ERR_CORRUPTED;
    if (!has_all || end_earlier(s, true) == ZERO_OK) return zero_failure_restore(&kept);
    return zero_fail(st, "%s; and %s", kept.text, zero_last_error());
}

json_t *zero_saving_facts(const zero_session *s)
{
    double held = s->engine.runner.profile.held;
    if (!s->config.checkpoint) return NULL;
    return json_pack("{s:I, s:f, s:f}", "count", s->saving.count, "exposed_seconds",
                     s->saving.waited + held, "update_seconds", held);
}

zero_status zero_saving_name_newest(const zero_session *s, zero_status st)
{
    char name[ZERO_CHECKPOINT_NAME];
    if (st != ZERO_ERR_CORRUPTED || s->saving.saved < 0) return st;
    zero_checkpoint_name(s->saving.saved, name);
    return zero_fail(st, "%s (%s/%s)", zero_last_error(), s->config.checkpoint, name);
}

zero_status zero_saving_close(zero_session *s, zero_status st)
{
    bool is_open = s->saving.directory.dir.is_open;
    zero_failure kept = zero_failure_keep(st);
    zero_checkpoint_abandon(s->saving.write);
    s->saving.write = NULL;
    join_remover(s);
    zero_checkpoint_directory_close(&s->saving.directory);
    if (st != ZERO_OK || !is_open) return zero_failure_restore(&kept);
    return zero_comm_barrier_after_files(&s->world);
}

/* ---- resuming ---- */

static zero_status load_into(zero_session *s, zero_checkpoint *c)
{
    zero_saving *saving = &s->saving;
    const zero_manifest *m = &c->manifest;
    bool has_new_data = zero_resumed_options_has_new_data(s, m);
    ZERO_TRY(zero_agree(&s->world, zero_resumed_options_check(s, m)));
    int64_t step = c->manifest.step, B = s->config.global_batch;
    ZERO_INVALID_IF(step > INT64_MAX / 2 / B,
                    "%s: step %" PRId64 " x --global-batch %" PRId64
                    " overflows the sample counter",
                    c->dir.path, step, B);
    double start = zero_clock_seconds();
    ZERO_TRY(zero_checkpoint_load(&s->engine, c));
    double seconds = zero_clock_seconds() - start;
    if (m->kept) { /* the next checkpoints keep what this one does */
        json_decref(s->importing.kept);
        s->importing.kept = json_incref(m->kept);
    }
    saving->start = saving->saved = m->step;
    s->has_loaded = true;
    zero_loader_resume(&s->loader, m->step, has_new_data ? 0 : m->samples);
    /* Other data begin with their first sample. */
    zero_print(saving->from, "step %" PRId64 " of %d rank%s, digest %s, loaded in %.3f s%s",
               m->step, m->table.layout.n_ranks, m->table.layout.n_ranks == 1 ? "" : "s",
               m->digest, seconds,
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
    ZERO_AT_END(zero_checkpoint_close) zero_checkpoint c = {0};
    zero_checkpoint_name(step, name);
    snprintf(path, sizeof s->saving.resumed.path, "%.*s/%s",
             ZERO_STORAGE_PATH - ZERO_CHECKPOINT_NAME - 1, s->config.checkpoint, name);
    ZERO_TRY(zero_checkpoint_open_all(&s->world, path, &c));
    return use(s, &c);
}

/* Uses checkpoint `at`. One that does not load ends the run, unless the user allows that an
 * older one replaces it. */
static zero_status use_newest(zero_session *s, with_checkpoint *use)
{
    const int64_t *steps = s->saving.directory.steps;
    int *at = &s->saving.resumed.at;
    for (zero_status st; (st = open_step(s, steps[*at], use)) != ZERO_OK; --*at) {
        bool goes_back = s->config.resume_older;
        if ((st != ZERO_ERR_IO && st != ZERO_ERR_FORMAT) || (*at == 0 && !goes_back))
            return st;
        ZERO_FAIL_IF(*at == 0, st, "%s; and there is no older checkpoint",
                     zero_last_error());
        ZERO_FAIL_IF(!goes_back, st, "%s; --resume-older goes back to step %" PRId64,
                     zero_last_error(), steps[*at - 1]);
        if (zero_comm_is_root(&s->world))
            fprintf(stderr, "zero: warning: %s; going back to step %" PRId64 "\n",
                    zero_last_error(), steps[*at - 1]);
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
    zero_print(saving->from, "from nothing: there is no checkpoint yet");
    ZERO_INVALID_IF(s->config.new_data,
                    "--new-data continues a checkpoint, and %s holds none: leave it out",
                    s->config.checkpoint);
    return ZERO_OK;
}

static zero_status check_room(const zero_session *s)
{
    uint64_t room, needed = zero_checkpoint_bytes(&s->model, s->config.plan.optimizer);
    ZERO_TRY(zero_storage_room(&s->saving.directory.dir, &room));
    ZERO_FAIL_IF(
        room < needed, ZERO_ERR_ENV,
        "--checkpoint %s: a checkpoint of this model takes %s, and %s are free there",
        s->config.checkpoint, ZERO_BYTES(needed), ZERO_BYTES(room));
    return ZERO_OK;
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
    zero_status st = ZERO_OK;
    if (d->n > 0 && !zero_config_resumes(&s->config))
        st = zero_fail(ZERO_ERR_INVALID,
                       "--checkpoint %s holds checkpoints up to step %" PRId64
                       ": continue with --resume, or give another directory",
                       s->config.checkpoint, d->steps[d->n - 1]);
    ZERO_TRY(zero_agree(&s->world, st));
    ZERO_TRY(zero_agree_after_files(&s->world, zero_comm_is_root(&s->world) ? check_room(s)
                                                                            : ZERO_OK));
    if (!saving->resumed.is_there) return ZERO_OK;
    ZERO_TRY(use_newest(s, load_into));
    /* Checkpoints newer than the loaded one are renamed, so that their steps can be
     * saved again. */
    for (int i = saving->resumed.at + 1;
         st == ZERO_OK && i < saving->directory.n && zero_comm_is_root(&s->world); i++)
        st =
            zero_checkpoint_set_aside(&s->saving.directory.dir, saving->directory.steps[i]);
    return zero_agree_after_files(&s->world, st);
}
