#include "engine/engine.h"

#include "base/hash.h"
#include "comm/fields.h"
#include "comm/watch.h"
#include "sharding/update.h"
#include "state/inspect.h"
#include "state/records.h"
#include "state/replicas.h"
#include "state/states.h"

static zero_status walk(zero_engine *e, zero_program_kind program)
{
    zero_run_input run = {.program = program, .loss_scale = 1.0};
    zero_run_output out;
    return zero_runner_run(&e->runner, &run, &out);
}

/* All ranks get the first failure of any rank's scratch file or device. */
static zero_status agree_on_transfers(zero_engine *e)
{
    zero_status st = zero_tier_status(&e->runner.tier);
    if (st == ZERO_OK) st = zero_link_status(&e->runner.link);
    return zero_agree(e->runner.comm, st);
}

zero_status zero_engine_settle(zero_engine *e)
{
    if (e->in_flight) {
        e->in_flight = false;
        ZERO_TRY(walk(e, ZERO_PROGRAM_EPILOGUE));
    }
    /* True if memory that a program uses can fail. */
    return e->schedule.input.offload != ZERO_OFFLOAD_OFF || e->runner.link.memory
               ? agree_on_transfers(e)
               : ZERO_OK;
}

/* After a program without a vote, which may have read wrong parameters. */
zero_status zero_engine_check_parameters(zero_engine *e)
{
    bool reads_file = e->schedule.input.offload_parameters != 0;
    return reads_file || e->runner.link.memory ? agree_on_transfers(e) : ZERO_OK;
}

zero_status zero_engine_finish_update(zero_engine *e)
{
    return e->runner.pending.is_due ? zero_engine_settle(e) : ZERO_OK;
}

/* A program without updates needs those of the last step before it. */
zero_status zero_engine_settle_update(zero_engine *e)
{
    bool is_lazy = e->schedule.input.offload == ZERO_OFFLOAD_LAZY;
    return is_lazy ? zero_engine_settle(e) : ZERO_OK;
}

zero_status zero_engine_check(zero_engine *e)
{
    ZERO_TRY(zero_engine_settle(e));
    ZERO_TRY(zero_records_verify(&e->runner));
    return zero_is_checked(&e->schedule) ? zero_replicas_compare(&e->runner, false)
                                         : ZERO_OK;
}

zero_status zero_engine_check_own(zero_engine *e)
{
    ZERO_TRY(zero_engine_settle(e));
    ZERO_TRY(zero_records_verify(&e->runner));
    return zero_is_checked(&e->schedule) ? zero_replicas_compare_own(&e->runner) : ZERO_OK;
}

zero_status zero_engine_publish(zero_engine *e)
{
    ZERO_TRY(zero_engine_settle(e));
    zero_status st = zero_states_write_padding(&e->runner);
    for (int g = 0; st == ZERO_OK && g < e->schedule.model->n_groups; g++)
        st = zero_records_take(&e->runner, g);
    if (st == ZERO_OK) st = zero_states_round(&e->runner);
    /* Neighbours read the parameters that lie once per node, so all ranks wait here. */
    ZERO_TRY(zero_agree(e->runner.comm, st));
    return walk(e, ZERO_PROGRAM_PROLOGUE);
}

zero_status zero_engine_set_weights(zero_engine *e, const zero_weights *weights)
{
    zero_comm *comm = e->runner.comm;
    ZERO_TRY(zero_engine_settle(e)); /* a gather reads what is written here */
    ZERO_TRY(zero_agree_after_files(comm, zero_states_fill(&e->runner, weights)));
    return zero_engine_publish(e);
}

/* ---- a step ---- */

/* A loss may be so although all gradients that were computed are finite. */
static const char *name_divergence(const zero_run_output *out)
{
    return isfinite(out->grad_norm) ? "loss" : "gradient";
}

/* Nothing was updated: the same step gives the same numbers, this time under a search. A
 * flipped bit may be why. */
static zero_status tell_divergence(zero_engine *e, const zero_run_input *run,
                                   const zero_run_output *out)
{
    zero_run_input again = *run;
    zero_run_output found;
    char where[ZERO_ORIGIN_TEXT];
    if (e->schedule.input.offload == ZERO_OFFLOAD_BACKWARD ||
        e->schedule.input.offload == ZERO_OFFLOAD_DELAYED) {
        /* Parameters have changed: the same step again would not find the first such
         * number. */
        bool is_early = e->schedule.input.offload == ZERO_OFFLOAD_BACKWARD;
        return zero_fail(
            ZERO_ERR_DIVERGED,
            "step %" PRId64
            ": the %s is not finite (loss %g, norm %g, learning rate %g)%s. Resume from a "
            "checkpoint; with --offload-when lazy and no --delayed-update the message "
            "would name the unit. Try a smaller --lr or a longer --warmup",
            run->step + 1, name_divergence(out), out->loss, out->grad_norm,
            (double)run->adamw.lr,
            is_early ? ", and some groups were updated with it before that was known" : "");
    }
    ZERO_TRY(zero_engine_check(e));
    again.finds_origin = true;
    ZERO_TRY(zero_runner_run(&e->runner, &again, &found));
    e->in_flight = true;
    ZERO_TRY(
        zero_origin_describe(e->runner.comm, &e->schedule.input, &found.origin, where));
    return zero_fail(ZERO_ERR_DIVERGED,
                     "step %" PRId64
                     ": the %s is not finite: %s (loss %g, norm %g, learning rate %g, loss "
                     "scale %g); the parameters are those of the step before. Try a "
                     "smaller --lr, a longer --warmup or a smaller --clip",
                     run->step + 1, name_divergence(out), where, out->loss, out->grad_norm,
                     (double)run->adamw.lr, run->loss_scale);
}

/* The numbers of a step that must be equal on all ranks. */
static const zero_field step_fields[] = {
    ZERO_FIELD(zero_step_input, step),  ZERO_FIELD(zero_step_input, lr),
    ZERO_FIELD(zero_step_input, beta1), ZERO_FIELD(zero_step_input, beta2),
    ZERO_FIELD(zero_step_input, eps),   ZERO_FIELD(zero_step_input, weight_decay),
    ZERO_FIELD(zero_step_input, clip),
};
_Static_assert(sizeof(zero_step_input) == 8 * ZERO_COUNT(step_fields),
               "a row for each, and no padding");

/* All ranks have the same verdict, so all take the same way here. */
static zero_status check_verdict(zero_engine *e, const zero_step_input *in,
                                 const zero_run_output *out)
{
    const zero_model *model = e->schedule.model;
    if (out->verdict == ZERO_STEP_FAILED) return agree_on_transfers(e);
    if (out->verdict == ZERO_STEP_REFUSED) return zero_agree(e->runner.comm, ZERO_OK);
    if (out->verdict == ZERO_STEP_CORRUPTED)
        return zero_name_step(in->step, zero_replicas_tell_changed(&e->runner));
    if (out->verdict == ZERO_STEP_UNDEFINED)
        return zero_agree(e->runner.comm, zero_undefined_tell(model, &out->undefined));
    if (out->verdict == ZERO_STEP_MISCOMPUTED)
        return zero_agree(e->runner.comm,
                          zero_twice_tell(&e->runner, in->step, &out->miscomputed));
    if (!out->differs) return ZERO_OK;
    ZERO_TRY(zero_compare_fields(e->runner.comm, "the step", ZERO_COUNT(step_fields),
                                 step_fields, in));
    return zero_fail(
        ZERO_ERR_INVALID,
        "ranks were given different steps, although their numbers read the same");
}

static zero_run_input step_input(const zero_engine *e, const zero_step_input *in)
{
    const uint64_t positive = UINT64_MAX >> 1;
    zero_run_input run = {.program = ZERO_PROGRAM_STEP,
                          .step = in->step,
                          .clip = in->clip,
                          .loss_scale = (double)e->loss_scale.scale,
                          .arguments = (int64_t)(XXH3_64bits(in, sizeof *in) & positive),
                          .adamw = zero_update_adamw(in->lr, in->beta1, in->beta2, in->eps,
                                                     in->weight_decay)};
    run.adamw.step = e->adam_steps + 1;
    return run;
}

/* `backward` updates before the vote of OVERFLOW: a rank that refuses a step must say so
 * earlier. */
static zero_status vote_early(zero_engine *e, zero_status mine)
{
    bool is_early = e->schedule.input.offload == ZERO_OFFLOAD_BACKWARD;
    return is_early ? zero_agree(e->runner.comm, mine) : ZERO_OK;
}

static zero_status walk_step(zero_engine *e, const zero_run_input *run,
                             zero_run_output *out)
{
    zero_watch_work(e->runner.comm, "step", run->step + 1);
    e->in_flight = false; /* after a failure nothing can be waited for */
    e->has_gradient = false;
    ZERO_TRY(zero_runner_run(&e->runner, run, out));
    e->in_flight = true;
    return ZERO_OK;
}

/* A step without its update. */
static zero_status compute(zero_engine *e, const zero_source *source,
                           const zero_step_input *in, zero_run_input *run,
                           zero_run_output *out)
{
    assert(!e->schedule.input.forward_only);
    run->source = source;
    run->arguments ^= source->counted;
    ZERO_TRY(vote_early(e, ZERO_OK));
    ZERO_TRY(walk_step(e, run, out));
    ZERO_TRY(check_verdict(e, in, out));
    e->has_gradient = !out->overflow;
    e->gradient_scale = run->loss_scale;
    return ZERO_OK;
}

zero_status zero_engine_step(zero_engine *e, const zero_source *source,
                             const zero_step_input *in, zero_run_output *out)
{
    const zero_plan_input *plan = &e->schedule.input;
    zero_run_input run = step_input(e, in);
    ZERO_TRY(compute(e, source, in, &run, out));
    e->adam_steps += !out->overflow;
    e->skipped += out->overflow;
    /* After the update, which divides by the scale that made the gradients. */
    if (zero_loss_scale_update(&e->loss_scale, out->overflow) != ZERO_OK)
        return tell_divergence(e, &run, out);
    /* Before updates are delayed, each is made at once. */
    bool is_early =
        plan->offload == ZERO_OFFLOAD_DELAYED && in->step + 1 < plan->delayed_from;
    return is_early ? zero_engine_settle(e) : ZERO_OK;
}

zero_status zero_engine_compute(zero_engine *e, const zero_source *source,
                                const zero_step_input *in, zero_run_output *out)
{
    zero_run_input run = step_input(e, in);
    run.only_computes = true;
    ZERO_TRY(compute(e, source, in, &run, out));
    bool is_legal = e->schedule.input.type == ZERO_FP16; /* a smaller scale may do */
    return out->overflow && !is_legal ? tell_divergence(e, &run, out) : ZERO_OK;
}

zero_status zero_engine_refuse(zero_engine *e, zero_status why)
{
    const zero_step_input none = {.eps = 1.0};
    zero_failure kept = zero_failure_keep(why);
    zero_run_output out;
    if (e->runner.comm->size == 1) return why;
    ZERO_TRY(vote_early(e, zero_failure_restore(&kept)));
    zero_run_input run = step_input(e, &none);
    run.is_refused = true;
    ZERO_TRY(walk_step(e, &run, &out));
    return zero_agree(e->runner.comm, zero_failure_restore(&kept));
}

/* ---- states and gradients, for others ---- */

struct reading {
    zero_type type;
    float factor, *out;
};

static void read_piece(void *arg, const void *piece, size_t bytes)
{
    struct reading *r = arg;
    int64_t n = (int64_t)(bytes / zero_type_size(r->type));
    zero_convert(r->type, ZERO_FP32, n, piece, r->out);
    for (int64_t i = 0; i < n; i++) r->out[i] *= r->factor;
    r->out += n;
}

/* The scale is a power of two. */
zero_status zero_engine_gradient(zero_engine *e, int group, zero_range range, float *out)
{
    zero_runner *r = &e->runner;
    int buffer = e->schedule.groups[group].grad;
    struct reading reading = {.type = e->schedule.buffers[buffer].type,
                              .factor = (float)(1.0 / e->gradient_scale),
                              .out = out};
    assert(e->has_gradient);
    return zero_inspect(r, zero_runner_element(r, buffer, range.begin),
                        zero_range_bytes(range, reading.type), read_piece, &reading);
}

/* ---- without training ---- */

int64_t zero_engine_eval_microbatches(const zero_engine *e)
{
    const zero_plan_input *plan = &e->schedule.input;
    return e->spec.eval_batches * plan->accumulation * plan->n_ranks;
}

zero_status zero_engine_evaluate(zero_engine *e, const zero_source *source, double *loss)
{
    const zero_plan_input *plan = &e->schedule.input;
    int64_t total = zero_engine_eval_microbatches(e);
    zero_run_input run = {
        .program = ZERO_PROGRAM_EVALUATE, .source = source, .loss_scale = 1.0};
    ZERO_TRY(zero_engine_settle_update(e));
    for (int64_t m = 0; m < total; m += plan->n_ranks) {
        zero_run_output out;
        run.first_microbatch = m;
        ZERO_TRY(zero_runner_run(&e->runner, &run, &out));
        for (int r = 0; r < plan->n_ranks; r++)
            e->eval_losses[m + r] = e->runner.all_losses[r];
    }
    ZERO_TRY(zero_engine_check_parameters(e));
    /* One tree over all microbatches: the same sum on any number of ranks. */
    double tokens = (double)(total * plan->micro_batch * plan->seq);
    *loss = zero_tree_sum_scalars(total, e->eval_losses) / tokens;
    return ZERO_OK;
}

/* ---- the digest ---- */

zero_status zero_engine_digest(zero_engine *e, char hex[33])
{
    assert(!e->schedule.input.forward_only);
    ZERO_TRY(zero_engine_check(e));
    return zero_states_digest(&e->runner, hex);
}
