/* zero train: the loop over steps. The schedule says what a step is; this file decides when
 * to evaluate, what to show and what to record. */
#include "cli/notes.h"
#include "cli/saving.h"
#include "cli/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/fail.h"
#include "cli/build.h"
#include "cli/output.h"
#include "comm/launch.h"
#include "math/blas.h"
#include "nn/shape.h"
#include "train/learning_rate.h"
#include "zero/version.h"

/* ---- the head of the run, and the first line of its metrics ---- */

/* Texts that a record points to. */
typedef struct {
    char mpi[128], blas[128], arithmetic[256];
    json_t *config;   /* owned, as the next */
    zero_kind *kinds; /* [n_kinds] of ranks: the texts that decide their bits */
    int n_kinds;
} texts;

/* The configuration with what the ranks, the data and the machine decided. */
static json_t *resolve(const zero_session *s)
{
    zero_config c = s->config;
    c.shape = zero_shape_own(s->model.shape);
    if (c.shape.kind != zero_architectures) c.architecture = c.shape.kind->name;
    c.collectives = zero_algorithm_name(s->engine.schedule.input.collectives);
    if (!c.checkpoint) c.keep = 0; /* refused without --checkpoint */
    return zero_run_options_resolved(&c);
}

static zero_status fill_in(const zero_session *s, texts *t)
{
    zero_launch_library(t->mpi, sizeof t->mpi);
    zero_blas_name(t->blas, sizeof t->blas);
    zero_show_arithmetic(&s->view, t->arithmetic, sizeof t->arithmetic);
    t->config = resolve(s);
    return t->config ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
}

/* Ranks on nodes of several kinds may compute other bits. */
static zero_status find_kinds(zero_session *s, texts *t)
{
    char mine[sizeof t->arithmetic + sizeof t->blas + 2];
    snprintf(mine, sizeof mine, "%s; %s", t->blas, t->arithmetic);
    return zero_comm_kinds(&s->world, mine, &t->kinds, &t->n_kinds);
}

static zero_metrics_run describe(const zero_session *s, const texts *t)
{
    return (zero_metrics_run){.version = zero_version(),
                              .commit = zero_build_commit(),
                              .build = ZERO_BUILD,
                              .command = s->facts.command,
                              .has_file = s->given->file != NULL,
                              .started = s->facts.started,
                              .id = s->facts.run,
                              .options = s->facts.options,
                              .config = t->config,
                              .model = s->config.model,
                              .shape = s->model.shape,
                              .n_params = s->model.n_params,
                              .plan = &s->engine.schedule.input,
                              .schedule = &s->engine.schedule,
                              .layout = &s->world.layout,
                              .fake_nodes = s->view.fake_nodes,
                              .hosts = s->hosts,
                              .n_hosts = s->n_hosts,
                              .mpi = t->mpi,
                              .cpu = s->topology.cpu,
                              .cores = s->topology.usable_cores,
                              .node_cores = s->topology.allowed_cores,
                              .blas = t->blas,
                              .arithmetic = t->arithmetic,
                              .kinds = t->kinds,
                              .n_kinds = t->n_kinds,
                              .blas_threads = zero_blas_threads(),
                              .data = s->dataset.corpus.description,
                              .start = s->saving.start};
}

static void tell(zero_session *s, const texts *t)
{
    zero_metrics_run run = describe(s, t);
    zero_show_setup(&s->view, &run);
    if (t->n_kinds > 1)
        fprintf(stderr,
                "zero: warning: ranks have %d kinds of kernels or BLAS: bits may depend on "
                "which rank computes what\n",
                t->n_kinds);
    zero_run_options_note(s->given, &s->config, s->engine.schedule.input.collectives,
                          s->n_hosts);
    if (s->saving.start >= s->config.steps) return;
    zero_metrics_begin(&s->metrics);
    zero_metrics_run_line(&s->metrics, &run);
}

static zero_status begin_record(zero_session *s)
{
    texts t = {.config = NULL};
    zero_status st = zero_agree(&s->world, fill_in(s, &t));
    if (st == ZERO_OK) st = find_kinds(s, &t);
    if (st == ZERO_OK && zero_comm_is_root(&s->world)) tell(s, &t);
    free(t.kinds);
    json_decref(t.config);
    return st == ZERO_OK ? zero_agree(&s->world, zero_output_check()) : st;
}

/* ---- the loop ---- */

static void train_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                         void *targets)
{
    (void)T; /* the loader's own */
    zero_loader_train_sample(arg, step, i, inputs, targets);
}

static void validation_sample(const void *arg, int64_t step, int64_t i, int64_t T,
                              void *inputs, void *targets)
{
    (void)step;
    (void)T;
    zero_loader_validation_sample(arg, i, inputs, targets);
}

/* Writes the tokens that a sample starts from and their number: the end of a text, or an
 * empty line, after which a story or a paragraph begins; without these token 0. */
static zero_status begin_text(const zero_session *s, const zero_ends *ends, zero_text *text)
{
    const zero_tokenizer *tok = s->dataset.corpus.tokenizer;
    text->n_known = 0;
    if (ends->n > 0)
        text->tokens[text->n_known++] = ends->id[0];
    else if (tok)
        ZERO_TRY(zero_tokenizer_encode(tok, (const unsigned char *)"\n\n", 2, text->tokens,
                                       &text->n_known));
    if (text->n_known > 0 && text->tokens[0] >= 0) return ZERO_OK;
    text->tokens[0] = 0; /* characters without a line's end: the first one */
    text->n_known = 1;
    return ZERO_OK;
}

static zero_status show_text(zero_session *s, int64_t step, const char *title)
{
    int64_t n = s->config.quiet ? 0 : s->config.sample;
    if (n == 0) return ZERO_OK;
    const zero_tokenizer *tok = s->dataset.corpus.tokenizer;
    zero_sampling how = {.step = step,
                         .seed = s->config.seed,
                         .temperature = 0.6,
                         .known = tok ? tok->vocab : s->model.vocab};
    ZERO_TRY(zero_importing_find_ends(&s->world, s->importing.kept, tok, s->model.shape,
                                      &how.ends));
    /* An empty line has 8 tokens at most. */
    zero_text text = {.tokens = malloc((size_t)(n + 8) * sizeof *text.tokens)};
    zero_status st = text.tokens ? begin_text(s, &how.ends, &text)
                                 : zero_fail(ZERO_ERR_NOMEM, "no memory for a sample");
    st = zero_agree(&s->world, st);
    if (st == ZERO_OK) st = zero_engine_generate_texts(&s->engine, &how, n, &text, 1);
    if (st == ZERO_OK && zero_comm_is_root(&s->world))
        zero_show_sample(&s->view, title, text.tokens + text.n_known,
                         text.n_drawn - (tok && text.has_ended));
    free(text.tokens);
    return st;
}

static zero_status evaluate_if_due(zero_session *s, zero_metrics_step *line)
{
    const zero_config *c = &s->config;
    if (c->eval_every == 0 || (line->step % c->eval_every != 0 && line->step != c->steps))
        return ZERO_OK;
    zero_source source = {.sample = validation_sample, .arg = &s->loader};
    ZERO_TRY(zero_engine_evaluate(&s->engine, &source, &line->val_loss));
    line->has_val_loss = true;
    return ZERO_OK;
}

/* Warns once and continues: the run is worth more than its record. */
static void warn_of_lost_metrics(zero_session *s)
{
    zero_listener listener = zero_notes_listener();
    int error = s->metrics.file.error;
    if (error == 0 || s->metrics_warned) return;
    zero_progress_view_erase(&s->progress);
    zero_listener_tell(&listener,
                       "--metrics %s: lines are lost: %s; the run continues, and the next "
                       "line that can be written says how many",
                       s->metrics.path,
                       error == EAGAIN ? "its reader is too slow" : strerror(error));
    s->metrics_warned = true;
}

/* Sums over the steps of a run. */
typedef struct {
    zero_run_totals run;
    zero_step_times times;
    double exposed; /* what the lines of steps have of exposed_so_far() */
} sums;

/* Seconds in which this rank, or its device, has waited for collectives and copies. An
 * evaluation may read those of a device that the step before it has left: they are the next
 * step's. */
static double exposed_so_far(const zero_session *s)
{
    return zero_profile_exposed(&s->engine.runner.profile, ZERO_PROGRAM_STEP);
}

/* Step number `step`, from 1, and what is due after it. */
static zero_status train_step(zero_session *s, int64_t step, sums *sum)
{
    zero_source source = {.sample = train_sample, .arg = &s->loader};
    zero_step_input in = zero_config_step_input(&s->config, step - 1, s->engine.adam_steps);
    double loss_scale = (double)s->engine.loss_scale.scale;
    zero_run_output out;
    zero_telling_begin(s, step);
    double start = zero_clock_seconds();
    zero_tracing_begin(s, step, start);
    ZERO_TRY(zero_engine_step(&s->engine, &source, &in, &out));
    double end = zero_clock_seconds();
    zero_tracing_end(s, end);
    ZERO_TRY(zero_telling_end(s));

    double exposed = exposed_so_far(s);
    zero_metrics_step line = {.step = step,
                              .loss = out.loss,
                              .lr = in.lr,
                              .grad_norm = out.grad_norm,
                              .loss_scale = loss_scale,
                              .skipped = out.overflow,
                              .seconds = end - start,
                              .exposed = exposed - sum->exposed,
                              .elapsed = end - s->facts.start,
                              .tokens = s->config.global_batch * s->model.seq};
    sum->exposed = exposed;
    ZERO_TRY(evaluate_if_due(s, &line));
    double eval_seconds = zero_clock_seconds() - end;
    sum->run.eval_seconds += eval_seconds;
    zero_run_totals *totals = &sum->run;
    zero_step_times_add(&sum->times, line.seconds);
    totals->seconds += line.seconds;
    totals->tokens += line.tokens;
    totals->loss = line.loss;
    if (line.has_val_loss) totals->val_loss = line.val_loss;
    totals->has_val_loss = totals->has_val_loss || line.has_val_loss;
    /* Rank 0 may fail here alone; main() then ends the job. */
    if (!zero_comm_is_root(&s->world)) return ZERO_OK;
    zero_progress_view_step(&s->progress, &s->view, &line, eval_seconds);
    zero_metrics_step_line(&s->metrics, &line);
    warn_of_lost_metrics(s);
    return zero_saving_check_output(s);
}

static zero_status check_digest(const zero_config *c, const char *digest)
{
    const char *expected = c->expect_digest;
    if (!expected || strcasecmp(expected, digest) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_DIFFERENT, "the digest is %s, and --expect-digest is %s",
                     digest, expected);
}

/* All ranks beside each other. */
typedef struct {
    zero_rank_bytes bytes;
    zero_rank_seconds seconds;
} beside;

static zero_status gather(const zero_session *s, beside *ranks)
{
    ZERO_TRY(zero_rank_bytes_gather(&s->engine, &ranks->bytes));
    return zero_rank_seconds_gather(&s->engine, &ranks->seconds);
}

static zero_status write_final_line(zero_session *s, const zero_run_totals *totals,
                                    const beside *ranks, json_t **facts)
{
    zero_status st = ZERO_OK;
    zero_metrics_final line = {.engine = &s->engine,
                               .comm = &s->world,
                               .fake_nodes = s->view.fake_nodes,
                               .step_time = &totals->step_time,
                               .profile = &totals->profile,
                               .bytes = &ranks->bytes,
                               .seconds = &ranks->seconds,
                               .digest = totals->digest};
    if (zero_comm_is_root(&s->world)) st = zero_metrics_final_facts(&line, facts);
    if (*facts) zero_metrics_final_line(&s->metrics, *facts);
    return zero_agree_after_files(&s->world, st);
}

static zero_status save_if_due(zero_session *s, int64_t step)
{
    double start = zero_clock_seconds();
    ZERO_TRY(zero_saving_step(s, step));
    zero_progress_view_saved(&s->progress, s->saving.saved, zero_clock_seconds() - start);
    return ZERO_OK;
}

static zero_status train_steps(zero_session *s, sums *sum)
{
    int64_t done = s->saving.start;
    double start = zero_clock_seconds();
    /* Random weights write random bytes, which show nothing. */
    if (s->view.has_loaded || s->config.init_from)
        ZERO_TRY(show_text(
            s, done, done > 0 ? "a sample before resuming" : "a sample before training"));
    sum->run.eval_seconds = zero_clock_seconds() - start;
    if (zero_comm_is_root(&s->world))
        zero_progress_view_begin(&s->progress, done, s->saving.saved);
    for (int64_t step = done + 1; step <= s->config.steps; step++) {
        ZERO_TRY(train_step(s, step, sum));
        ZERO_TRY(save_if_due(s, step));
    }
    zero_progress_view_end(&s->progress);
    start = zero_clock_seconds();
    ZERO_TRY(show_text(s, s->config.steps, "a sample after training"));
    sum->run.eval_seconds += zero_clock_seconds() - start;
    sum->run.step_time = zero_step_times_end(&sum->times);
    /* Gathers and shows the ledgers, the profile and the digest. */
    ZERO_TRY(zero_engine_digest(&s->engine, sum->run.digest));
    zero_device_times_read(&s->engine.runner.times);
    ZERO_TRY(zero_profile_gather(&s->engine.runner.profile, ZERO_PROGRAM_STEP, &s->world,
                                 &sum->run.profile));
    beside ranks = {0};
    json_t *facts = NULL; /* of the last line, on rank 0 */
    zero_status st = gather(s, &ranks);
    if (st == ZERO_OK) st = write_final_line(s, &sum->run, &ranks, &facts);
    zero_rank_bytes_destroy(&ranks.bytes);
    zero_rank_seconds_destroy(&ranks.seconds);
    warn_of_lost_metrics(s);
    if (st == ZERO_OK && facts) zero_show_totals(&s->view, &sum->run, json_incref(facts));
    json_decref(facts);
    zero_profile_ranks_destroy(&sum->run.profile);
    return st == ZERO_OK ? check_digest(&s->config, sum->run.digest) : st;
}

static zero_status train(zero_session *s)
{
    sums sum = {0};
    ZERO_TRY(begin_record(s));
    zero_tracing_tell(s);
    int64_t steps = s->config.steps - s->saving.start;
    if (steps <= 0) {
        /* The checkpoint has all steps already, or there are none. Metrics of the run that
         * made them stay as they are. */
        char digest[33];
        ZERO_TRY(zero_saving_step(s, s->config.steps));
        ZERO_TRY(zero_engine_digest(&s->engine, digest));
        if (zero_comm_is_root(&s->world)) zero_show_finished(&s->view, digest);
        return check_digest(&s->config, digest);
    }
    zero_status st = zero_agree(&s->world, zero_step_times_init(&sum.times, steps));
    if (st == ZERO_OK) st = train_steps(s, &sum);
    zero_progress_view_end(&s->progress); /* before the message of a failure */
    zero_step_times_destroy(&sum.times);
    return st;
}

static zero_status prepare(zero_session *s)
{
    ZERO_TRY(zero_saving_find(s));
    ZERO_TRY(zero_session_build(s));
    ZERO_TRY(zero_saving_open(s));
    ZERO_TRY(zero_telling_open(s));
    /* Last: only zero_tracing_close() removes the file that it begins. */
    return zero_tracing_open(s);
}

static zero_status run_session(zero_session *s)
{
    ZERO_TRY(zero_session_open(s));
    zero_status st = prepare(s);
    if (st == ZERO_OK) st = zero_tracing_close(s, train(s));
    zero_telling_close(s);
    ZERO_TRY(zero_saving_close(s, zero_saving_name_newest(s, st)));
    return zero_session_close(s);
}

static zero_status run(void *options, const zero_options *given)
{
    zero_session s = {.config = *(const zero_config *)options, .given = given};
    zero_status st = run_session(&s);
    zero_deadline_close(&s.deadline); /* its thread looks into this frame */
    return st;
}

static const zero_option_table table = {.rows = zero_run_options, .in_file = true};

const zero_command zero_command_train = {
    .name = "zero train",
    .summary = "train a model: mpirun -n 4 zero train [options]",
    .usage = "mpirun -n RANKS zero train [options]\n"
             "zero train [options]",
    .about =
        "Trains a GPT-style model with ZeRO over the ranks that mpirun starts; one rank "
        "needs no mpirun. Without options it trains a tiny model on generated stories.",
    .example = "mpirun -n 4 zero train --stage 3 --dtype bf16 --checkpoint runs/a",
    .exits = ZERO_EXIT_ANY,
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(zero_config),
    .run = run,
};
