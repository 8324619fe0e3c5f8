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

/* The configuration with what the ranks, the data and the machine decided. */
static json_t *resolve(const zero_session *s)
{
    zero_config c = s->config;
    c.shape = zero_shape_own(s->model.shape);
    if (c.shape.kind != zero_architectures) c.architecture = c.shape.kind->name;
    c.collectives = zero_algorithm_name(s->engine.schedule.input.collectives);
    if (!c.checkpoint) c.keep = 0; /* refused without --checkpoint */
    return zero_options_typed(zero_run_options, &c);
}

static zero_metrics_run describe(const zero_session *s, const json_t *config)
{
    return (zero_metrics_run){.version = zero_version(),
                              .commit = zero_build_commit(),
                              .build = ZERO_BUILD,
                              .command = s->facts.command,
                              .has_file = s->given->file != NULL,
                              .started = s->facts.started,
                              .id = s->facts.run,
                              .options = s->facts.options,
                              .config = config,
                              .model = zero_config_model(&s->config),
                              .shape = s->model.shape,
                              .n_params = s->model.n_params,
                              .plan = &s->engine.schedule.input,
                              .schedule = &s->engine.schedule,
                              .layout = &s->world.layout,
                              .fake_nodes = s->view.fake_nodes,
                              .hosts = s->hosts,
                              .n_hosts = s->n_hosts,
                              .cpu = s->topology.cpu,
                              .cores = s->topology.usable_cores,
                              .node_cores = s->topology.allowed_cores,
                              .blas_threads = zero_blas_threads(),
                              .data = s->dataset.corpus.description,
                              .start = s->saving.start};
}

/* Shows the head of the run and, if it has steps to do, begins its metrics with the same.
 * Collective; ZERO_ERR_ENV if the standard output cannot be written. */
static zero_status begin_record(zero_session *s)
{
    char mpi[128], blas[128], arithmetic[256], mine[sizeof blas + sizeof arithmetic + 2];
    zero_kind *kinds = NULL;
    json_t *config = resolve(s);
    zero_metrics_run run = describe(s, config);
    zero_launch_library(mpi, sizeof mpi);
    zero_blas_name(blas, sizeof blas);
    zero_show_arithmetic(&s->view, arithmetic, sizeof arithmetic);
    run.mpi = mpi;
    run.blas = blas;
    run.arithmetic = arithmetic;
    zero_status st =
        config ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
    st = zero_agree(&s->world, st);
    /* Ranks on nodes of several kinds may compute other bits. */
    snprintf(mine, sizeof mine, "%s; %s", blas, arithmetic);
    if (st == ZERO_OK) st = zero_comm_kinds(&s->world, mine, &kinds, &run.n_kinds);
    run.kinds = kinds;
    if (st == ZERO_OK && zero_comm_is_root(&s->world)) {
        zero_show_setup(&s->view, &run);
        if (run.n_kinds > 1)
            fprintf(
                stderr,
                zero_show_bits(&s->view, mine, sizeof mine)
                    ? "zero: note: ranks have %d kinds of kernels; their bits are equal\n"
                    : "zero: warning: ranks have %d kinds of kernels or BLAS: bits may "
                      "depend on which rank computes what\n",
                run.n_kinds);
        zero_run_options_note(s->given, &s->config, s->engine.schedule.input.collectives,
                              s->n_hosts);
        if (s->saving.start < s->config.steps) {
            zero_metrics_begin(&s->metrics);
            zero_metrics_run_line(&s->metrics, &run);
        }
    }
    free(kinds);
    json_decref(config);
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
    zero_status st = ZERO_OK;
    /* A sample starts from the end of a text, or an empty line, after which a story or a
     * paragraph begins; without these from token 0. */
    if (!text.tokens)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for a sample");
    else if (how.ends.n > 0)
        text.tokens[text.n_known++] = how.ends.id[0];
    else if (tok)
        st = zero_tokenizer_encode(tok, (const unsigned char *)"\n\n", 2, text.tokens,
                                   &text.n_known);
    if (st == ZERO_OK && (text.n_known == 0 || text.tokens[0] < 0)) {
        text.tokens[0] = 0; /* characters without a line's end: the first one */
        text.n_known = 1;
    }
    st = zero_agree(&s->world, st);
    if (st == ZERO_OK) st = zero_engine_generate_texts(&s->engine, &how, n, &text, 1);
    if (st == ZERO_OK && zero_comm_is_root(&s->world))
        zero_show_sample(&s->view, title, text.tokens + text.n_known,
                         text.n_drawn - (tok && text.has_ended));
    free(text.tokens);
    return st;
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
    double exposed; /* what the lines of steps have of the waiting */
} sums;

/* Step number `step`, from 1, and what is due after it. */
static zero_status train_step(zero_session *s, int64_t step, sums *sum)
{
    zero_source source = {.sample = train_sample, .arg = &s->loader};
    zero_step_input in = zero_config_step_input(&s->config, step - 1, s->engine.adam_steps);
    double loss_scale = (double)s->engine.loss_scale.scale;
    zero_run_output out;
    double start = zero_clock_seconds();
    zero_tracing_begin(s, step, start);
    ZERO_TRY(zero_engine_step(&s->engine, &source, &in, &out));
    double end = zero_clock_seconds();
    ZERO_TRY(zero_tracing_end(s, end));

    /* Seconds in which this rank, or its device, has waited for collectives and copies. An
     * evaluation may read those of a device that the step before it has left: they are the
     * next step's. */
    double exposed = zero_profile_exposed(&s->engine.runner.profile, ZERO_PROGRAM_STEP);
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
    const zero_config *c = &s->config;
    if (c->eval_every > 0 && (step % c->eval_every == 0 || step == c->steps)) {
        zero_source validation = {.sample = validation_sample, .arg = &s->loader};
        ZERO_TRY(zero_engine_evaluate(&s->engine, &validation, &line.val_loss));
        line.has_val_loss = true;
    }
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

static zero_status check_digest(const zero_session *s, const char *digest)
{
    const char *expected = s->config.expect_digest;
    char bits[256];
    if (!expected || strcasecmp(expected, digest) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_DIFFERENT, "the digest is %s, and --expect-digest is %s%s",
                     digest, expected,
                     zero_show_bits(&s->view, bits, sizeof bits)
                         ? ""
                         : "; other machines may have other bits: --bits portable has one "
                           "digest on every CPU");
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
        start = zero_clock_seconds();
        ZERO_TRY(zero_saving_step(s, step));
        zero_progress_view_saved(&s->progress, s->saving.saved,
                                 zero_clock_seconds() - start);
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
    /* All ranks beside each other. */
    zero_rank_bytes bytes = {0};
    zero_rank_seconds seconds = {0};
    json_t *facts = NULL; /* of the last line, on rank 0 */
    zero_status st = zero_rank_bytes_gather(&s->engine, &bytes);
    if (st == ZERO_OK) st = zero_rank_seconds_gather(&s->engine, &seconds);
    if (st == ZERO_OK) {
        zero_metrics_final line = {.engine = &s->engine,
                                   .comm = &s->world,
                                   .fake_nodes = s->view.fake_nodes,
                                   .step_time = &sum->run.step_time,
                                   .profile = &sum->run.profile,
                                   .bytes = &bytes,
                                   .seconds = &seconds,
                                   .digest = sum->run.digest};
        if (zero_comm_is_root(&s->world)) st = zero_metrics_final_facts(&line, &facts);
        if (facts) zero_metrics_final_line(&s->metrics, facts);
        st = zero_agree_after_files(&s->world, st);
    }
    zero_rank_bytes_destroy(&bytes);
    zero_rank_seconds_destroy(&seconds);
    warn_of_lost_metrics(s);
    if (st == ZERO_OK && facts) zero_show_totals(&s->view, &sum->run, json_incref(facts));
    json_decref(facts);
    zero_profile_ranks_destroy(&sum->run.profile);
    return st == ZERO_OK ? check_digest(s, sum->run.digest) : st;
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
        return check_digest(s, digest);
    }
    zero_status st = zero_agree(&s->world, zero_step_times_init(&sum.times, steps));
    if (st == ZERO_OK) st = train_steps(s, &sum);
    zero_progress_view_end(&s->progress); /* before the message of a failure */
    zero_step_times_destroy(&sum.times);
    return st;
}

static zero_status run_session(zero_session *s)
{
    ZERO_TRY(zero_session_open(s));
    zero_status st = zero_saving_find(s);
    if (st == ZERO_OK) st = zero_session_build(s);
    if (st == ZERO_OK) st = zero_saving_open(s);
    if (st == ZERO_OK) st = zero_telling_open(s);
    /* Last: only zero_tracing_close() removes the file that it begins. */
    if (st == ZERO_OK) st = zero_tracing_open(s);
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
#include "cli/options/train.command"
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(zero_config),
    .run = run,
};
