/* zero train: the loop over steps. The schedule says what a step is; this file decides when
 * to evaluate, what to show and what to record. */
#include "cli/record.h"
#include "cli/saving.h"
#include "cli/tracing.h"

#include <strings.h>

#include "base/clock.h"
#include "report/print_text.h"
#include "train/learning_rate.h"
#include "zero/version.h"

/* ---- the loop ---- */

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
    ZERO_FREED int32_t *tokens = malloc((size_t)(n + 8) * sizeof *tokens);
    zero_text text = {.tokens = tokens};
    zero_status st = ZERO_OK;
    /* A sample starts from the end of a text, or an empty line, after which a story or a
     * paragraph begins; without these from token 0. */
    if (!tokens)
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
    ZERO_TRY(zero_agree(&s->world, st));
    ZERO_TRY(zero_engine_generate_texts(&s->engine, &how, n, &text, 1));
    if (!zero_comm_is_root(&s->world)) return ZERO_OK;
    const int32_t *drawn = tokens + text.n_known;
    int64_t n_drawn = text.n_drawn - (tok && text.has_ended);
    printf("---- %s\n", title);
    for (int64_t i = 0; !tok && i < n_drawn; i++) printf("%d ", drawn[i]);
    /* Without memory for it the sample is left out; the run does not fail. */
    bool shown = !tok || zero_print_tokens(tok, drawn, n_drawn, false, stdout) == ZERO_OK;
    printf("%s\n----\n", shown ? "" : "(no memory)");
    fflush(stdout);
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

/* --record: the states before the last step. */
static zero_status begin_record(zero_session *s, const zero_source *source,
                                const zero_step_input *in)
{
    const zero_config *c = &s->config;
    char sharding[32];
    zero_print(sharding, "stage %d", (int)c->plan.stage);
    const zero_step_facts facts = {.framework = "zero " ZERO_VERSION_STRING,
                                   .sharding = sharding,
                                   .dtype = zero_type_name_at(c->plan.type),
                                   .updates = s->engine.adam_steps,
                                   .lr = in->lr,
                                   .beta1 = in->beta1,
                                   .beta2 = in->beta2,
                                   .eps = in->eps,
                                   .weight_decay = in->weight_decay,
                                   .clip = in->clip,
                                   .loss_scale = (double)s->engine.loss_scale.scale,
                                   .step = in->step,
                                   .seed = c->seed,
                                   .dropout = c->dropout,
                                   .activations =
                                       zero_type_name_at(zero_config_activations(c)),
                                   .slices = c->tp.slices,
                                   .reproducible = c->plan.reproducible};
    return zero_step_record_begin(&s->record,
                                  &(zero_step_outline){.model = &s->model,
                                                       .facts = &facts,
                                                       .type = c->plan.type,
                                                       .ranks = c->plan.n_ranks,
                                                       .microbatches = c->plan.accumulation,
                                                       .batch = c->plan.micro_batch},
                                  source);
}

/* --record of a run without a last step to record: says why there is no file. A step that
 * was skipped changes nothing, so there is nothing to compare. */
static void tell_no_record(const zero_session *s, zero_status st)
{
    const zero_listener listener = zero_notes_listener();
    if (!s->record.e || s->record.is_written || !zero_comm_is_root(&s->world)) return;
    zero_listener_tell(
        &listener, "--record %s: no step is recorded, because %s", s->config.record,
        s->saving.start >= s->config.steps ? "this run had no step left to make"
        : st == ZERO_STOPPED ? "the run was stopped before its last step; --resume with "
                               "--record records it"
        : st != ZERO_OK      ? "the run failed"
                             : "a gradient overflowed in the last step, which "
                               "was skipped");
}

/* --metrics-every: others say nothing that a reader could not do without. */
static bool has_metrics_line(const zero_session *s, const zero_metrics_step *line)
{
    const zero_config *c = &s->config;
    return line->step % c->metrics_every == 0 || line->step == s->saving.start + 1 ||
           line->step == c->steps || line->has_val_loss || line->skipped ||
           !isfinite(line->loss);
}

typedef struct {
    zero_totals run;
    zero_step_times times;
    double exposed; /* what the lines of steps have of the waiting */
} sums;

/* Step number `step`, from 1, and what is due after it. */
static zero_status train_step(zero_session *s, int64_t step, sums *sum)
{
    zero_source source = {.sample = zero_loader_train_sample, .arg = &s->loader};
    zero_step_input in = zero_config_step_input(&s->config, step - 1, s->engine.adam_steps);
    double loss_scale = (double)s->engine.loss_scale.scale;
    zero_run_output out;
    double start = zero_clock_seconds();
    zero_tracing_begin(s, step, start);
    const bool is_recorded = s->config.record && step == s->config.steps;
    if (is_recorded) {
        ZERO_TRY(begin_record(s, &source, &in));
        start = zero_clock_seconds();
    }
    zero_status st = zero_engine_step(&s->engine, &source, &in, &out);
    if (st != ZERO_OK) return zero_saving_rescue(s, st);
    double end = zero_clock_seconds();
    ZERO_TRY(zero_tracing_end(s, end));
    if (is_recorded && !out.overflow)
        ZERO_TRY(zero_step_record_end(&s->record, out.loss, out.grad_norm));

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
        zero_source validation = {.sample = zero_loader_validation_sample,
                                  .arg = &s->loader};
        ZERO_TRY(zero_engine_evaluate(&s->engine, &validation, &line.val_loss));
        line.has_val_loss = true;
    }
    double eval_seconds = zero_clock_seconds() - end;
    sum->run.eval_seconds += eval_seconds;
    zero_totals *totals = &sum->run;
    zero_step_times_add(&sum->times, line.seconds);
    totals->seconds += line.seconds;
    totals->tokens += line.tokens;
    totals->loss = line.loss;
    if (line.has_val_loss) totals->val_loss = line.val_loss;
    totals->has_val_loss = totals->has_val_loss || line.has_val_loss;
    /* Rank 0 may fail here alone; main() then ends the job. */
    if (!zero_comm_is_root(&s->world)) return ZERO_OK;
    double computed = zero_profile_computing(&s->engine.runner.profile, ZERO_PROGRAM_STEP);
    zero_progress_view_step(&s->progress, &line, computed, eval_seconds);
    if (has_metrics_line(s, &line)) zero_metrics_step_line(&s->metrics, &line);
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
                     zero_record_bits(s, bits, sizeof bits)
                         ? ""
                         : "; other machines may have other bits: --bits portable has one "
                           "digest on every CPU");
}

static zero_status train_steps(zero_session *s, sums *sum)
{
    int64_t done = s->saving.start;
    double start = zero_clock_seconds();
    /* Random weights write random bytes, which show nothing. */
    if (s->has_loaded || s->config.init_from)
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
    /* Gathers and shows the ledgers, the profile and the digest. */
    zero_step_time step_time = zero_step_times_end(&sum->times);
    step_time.flops = zero_shape_flops(s->model.shape) *
                      (double)(s->config.global_batch * s->model.seq) / s->world.size;
    char digest[33];
    json_auto_t *facts = NULL; /* of the last line, on rank 0 */
    ZERO_TRY(zero_engine_digest(&s->engine, digest));
    zero_device_times_read(&s->engine.runner.times);
    zero_status st = zero_metrics_final_facts(&s->engine, &s->world, s->fake_nodes,
                                              &step_time, digest, &facts);
    json_t *saves = zero_saving_facts(s);
    if (facts && saves) json_object_set(facts, "saves", saves);
    json_decref(saves);
    if (facts) zero_metrics_final_line(&s->metrics, facts);
    st = zero_agree_after_files(&s->world, st);
    warn_of_lost_metrics(s);
    ZERO_TRY(st);
    if (facts) zero_record_totals(s, &sum->run, json_incref(facts));
    return check_digest(s, digest);
}

static zero_status train(zero_session *s)
{
    sums sum = {0};
    ZERO_TRY(zero_record_begin(s));
    zero_tracing_tell(s);
    int64_t steps = s->config.steps - s->saving.start;
    if (steps <= 0) {
        /* The checkpoint has all steps already, or there are none. Metrics of the run that
         * made them stay as they are. */
        char digest[33];
        ZERO_TRY(zero_saving_step(s, s->config.steps));
        ZERO_TRY(zero_engine_digest(&s->engine, digest));
        if (zero_comm_is_root(&s->world)) zero_record_finished(s, digest);
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
    if (st == ZERO_OK && s->config.record)
        st = zero_step_record_open(&s->record, s->config.record, &s->engine);
    /* Last: only zero_tracing_close() removes the file that it begins. */
    if (st == ZERO_OK) st = zero_tracing_open(s);
    if (st == ZERO_OK) st = zero_tracing_close(s, train(s));
    zero_telling_close(s);
    tell_no_record(s, st);
    ZERO_TRY(zero_saving_close(s, zero_saving_name_newest(s, st)));
    return zero_session_close(s);
}

static zero_status run(void *options, const zero_options *given)
{
    zero_session s = {.config = *(const zero_config *)options, .given = given};
    zero_status st = run_session(&s);
    zero_step_record_abandon(&s.record);
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
