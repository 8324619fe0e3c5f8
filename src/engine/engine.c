#include "engine/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/tree.h"
#include "comm/watch.h"
#include "engine/plan.h"
#include "engine/run_setup.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"

zero_engine_state zero_engine_group(const zero_engine *e, int group)
{
    return zero_states_of(&e->runner, group);
}

static int64_t eval_microbatches(const zero_engine *e)
{
    const zero_plan_input *plan = &e->schedule.input;
    return e->spec.eval_batches * plan->accumulation * plan->n_ranks;
}

/* Refuses a run that the system's out-of-memory killer would end. */
static zero_status check_memory(const zero_engine *e)
{
    double needed = (double)zero_plan_needed(&e->schedule);
    double limit = (double)e->spec.memory_limit;
    if (limit <= 0.0 || needed <= limit) return ZERO_OK;
    if (e->spec.plan.forward_only)
        return zero_fail(
            ZERO_ERR_NOMEM,
            "the model needs %.1f MiB per rank, but %.1f MiB are available: use "
            "more ranks and a higher --stage",
            needed / 0x1p20, limit / 0x1p20);
    return zero_fail(
        ZERO_ERR_NOMEM,
        "the plan needs %.1f MiB per rank, but %.1f MiB are available: use more nodes, a "
        "smaller --micro-batch or --seq, --recompute, a higher --stage, or a smaller model",
        needed / 0x1p20, limit / 0x1p20);
}

static zero_status init_local(zero_engine *e, const zero_engine_spec *spec,
                              const zero_comm *comm)
{
    if (spec->plan.n_ranks != comm->size || spec->plan.rank != comm->rank)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for rank %d of %d cannot run on rank %d of %d",
                         spec->plan.rank, spec->plan.n_ranks, comm->rank, comm->size);
    e->spec = *spec;
    e->loss_scale = zero_loss_scale_init(spec->plan.type);
    ZERO_TRY(zero_schedule_compile(&e->schedule, &spec->plan));
    ZERO_TRY(check_memory(e));
    e->eval_losses = calloc((size_t)eval_microbatches(e) + 1, sizeof *e->eval_losses);
    if (e->eval_losses) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the losses of %" PRId64 " microbatches",
                     eval_microbatches(e));
}

static zero_status walk(zero_engine *e, zero_program_kind program)
{
    zero_run_input run = {.program = program, .loss_scale = 1.0};
    zero_run_output out;
    return zero_runner_run(&e->runner, &run, &out);
}

zero_status zero_engine_settle(zero_engine *e)
{
    if (!e->in_flight) return ZERO_OK;
    e->in_flight = false;
    return walk(e, ZERO_PROGRAM_EPILOGUE);
}

zero_status zero_engine_publish(zero_engine *e)
{
    ZERO_TRY(zero_engine_settle(e));
    ZERO_TRY(zero_states_round(&e->runner));
    /* Neighbours read the parameters that lie once per node. */
    ZERO_TRY(zero_comm_barrier(e->runner.comm));
    return walk(e, ZERO_PROGRAM_PROLOGUE);
}

zero_status zero_engine_set_weights(zero_engine *e, const zero_weights *weights)
{
    zero_comm *comm = e->runner.comm;
    ZERO_TRY(zero_engine_settle(e)); /* a gather reads what is written here */
    zero_comm_be_patient(comm, ZERO_FILE_PATIENCE); /* weights may come from files */
    zero_status st = zero_agree(comm, zero_states_fill(&e->runner, weights));
    zero_comm_be_patient(comm, 1.0);
    return st == ZERO_OK ? zero_engine_publish(e) : st;
}

static zero_status init_weights(zero_engine *e)
{
    zero_drawn_weights drawn = {e->schedule.input.model, e->spec.seed};
    zero_weights random = zero_weights_drawn(&drawn);
    const zero_weights *given = e->spec.weights;
    e->spec.weights = NULL; /* borrowed until here */
    return zero_engine_set_weights(e, given ? given : &random);
}

/* The same plan, with messages instead of shared memory. */
static zero_status compile_again(zero_engine *e)
{
    zero_plan_input plan = e->schedule.input;
    plan.collectives = ZERO_ALGORITHM_P2P;
    zero_schedule_destroy(&e->schedule);
    ZERO_TRY(zero_schedule_compile(&e->schedule, &plan));
    return check_memory(e);
}

static zero_status share_memory(zero_engine *e, zero_comm *comm)
{
    if (e->schedule.window_bytes == 0) return ZERO_OK;
    zero_status st = zero_runner_share(&e->schedule, comm, &e->window);
    if (st != ZERO_ERR_ENV || !e->spec.may_use_p2p) return st;
    snprintf(e->why_p2p, sizeof e->why_p2p, "%s", zero_last_error());
    return zero_agree(comm, compile_again(e));
}

zero_status zero_engine_init(zero_engine *e, const zero_engine_spec *spec, zero_comm *comm)
{
    *e = (zero_engine){0};
    zero_status st = zero_agree(comm, init_local(e, spec, comm));
    if (st == ZERO_OK) st = share_memory(e, comm);
    if (st == ZERO_OK)
        st = zero_runner_init(&e->runner, &e->schedule, spec->backend, comm, &e->window);
    if (st == ZERO_OK) st = init_weights(e);
    if (st != ZERO_OK) zero_engine_destroy(e);
    return st;
}

void zero_engine_destroy(zero_engine *e)
{
    /* Collectives in flight must not outlive their buffers; a failure has no one to tell. */
    if (e->in_flight && zero_engine_settle(e) != ZERO_OK) e->in_flight = false;
    zero_runner_destroy(&e->runner);
    zero_window_destroy(&e->window);
    zero_schedule_destroy(&e->schedule);
    free(e->eval_losses);
    *e = (zero_engine){0};
}

/* ---- a step ---- */

/* Nothing was updated: the same step gives the same numbers, this time under a search. */
static zero_status tell_divergence(zero_engine *e, const zero_run_input *run,
                                   const zero_run_output *out)
{
    zero_run_input again = *run;
    zero_run_output found;
    char where[ZERO_ORIGIN_TEXT];
    again.finds_origin = true;
    ZERO_TRY(zero_runner_run(&e->runner, &again, &found));
    ZERO_TRY(
        zero_origin_describe(e->runner.comm, &e->schedule.input, &found.origin, where));
    return zero_fail(
        ZERO_ERR_DIVERGED,
        "step %" PRId64 ": the gradient is not finite: %s (loss %g, norm %g, "
        "learning rate %g, loss scale %g); the parameters are those of the step "
        "before. Try a smaller --lr, a longer --warmup or a smaller --clip",
        run->step + 1, where, out->loss, out->grad_norm, (double)run->adamw.lr,
        run->loss_scale);
}

zero_status zero_engine_step(zero_engine *e, const zero_source *source,
                             const zero_step_input *in, zero_run_output *out)
{
    assert(!e->schedule.input.forward_only);
    zero_run_input run = {.program = ZERO_PROGRAM_STEP,
                          .source = source,
                          .step = in->step,
                          .clip = in->clip,
                          .loss_scale = (double)e->loss_scale.scale,
                          .adamw = {.lr = (float)in->lr,
                                    .beta1 = (float)in->beta1,
                                    .beta2 = (float)in->beta2,
                                    .eps = (float)in->eps,
                                    .weight_decay = (float)in->weight_decay,
                                    .step = e->adam_steps + 1}};
    zero_watch_work(e->runner.comm, "step", in->step + 1);
    e->in_flight = false; /* after a failure nothing can be waited for */
    ZERO_TRY(zero_runner_run(&e->runner, &run, out));
    e->in_flight = true;
    e->adam_steps += !out->overflow;
    e->skipped += out->overflow;
    /* After the update, which divides by the scale that made the gradients. */
    if (zero_loss_scale_update(&e->loss_scale, out->overflow) == ZERO_OK) return ZERO_OK;
    return tell_divergence(e, &run, out);
}

/* ---- without training ---- */

zero_status zero_engine_evaluate(zero_engine *e, const zero_source *source, double *loss)
{
    const zero_plan_input *plan = &e->schedule.input;
    int64_t total = eval_microbatches(e);
    zero_run_input run = {
        .program = ZERO_PROGRAM_EVALUATE, .source = source, .loss_scale = 1.0};
    for (int64_t m = 0; m < total; m += plan->n_ranks) {
        zero_run_output out;
        run.first_microbatch = m;
        ZERO_TRY(zero_runner_run(&e->runner, &run, &out));
        for (int r = 0; r < plan->n_ranks; r++)
            e->eval_losses[m + r] = e->runner.all_losses[r];
    }
    /* One tree over all microbatches: the same sum on any number of ranks. */
    double tokens = (double)(total * plan->micro_batch * plan->seq);
    *loss = zero_tree_sum_scalars(total, e->eval_losses) / tokens;
    return ZERO_OK;
}

zero_status zero_engine_generate(zero_engine *e, const zero_sampling *how, int64_t n_known,
                                 int64_t n, int32_t *text)
{
    const zero_plan_input *plan = &e->schedule.input;
    zero_rng rng = {.seed = (uint64_t)how->seed,
                    .purpose = ZERO_RNG_SAMPLING,
                    .step = (uint64_t)how->step};
    for (int64_t at = n_known; at < n_known + n; at++) {
        int64_t T = at < plan->seq ? at : plan->seq;
        zero_run_input run = {.program = ZERO_PROGRAM_GENERATE,
                              .prompt = text + at - T,
                              .T = T,
                              .loss_scale = 1.0};
        zero_run_output out;
        ZERO_TRY(zero_runner_run(&e->runner, &run, &out));
        text[at] =
            zero_sampling_draw(how, out.logits, zero_rng_uniform(&rng, (uint64_t)at));
        /* Equal machines compute equal bits; on unequal ones rank 0 decides. */
        ZERO_TRY(zero_comm_broadcast(e->runner.comm, 0, &text[at], sizeof text[at]));
        if (text[at] < 0)
            return zero_fail(ZERO_ERR_DIVERGED,
                             "the model's logits after %" PRId64
                             " tokens are not finite: its weights are not finite, or too "
                             "large for %s",
                             T, zero_type_name(plan->type));
    }
    return ZERO_OK;
}

/* ---- ledgers and digest ---- */

zero_traffic zero_engine_planned_traffic(const zero_engine *e, zero_op op)
{
    zero_traffic sum = {0};
    for (int p = 0; p < ZERO_PROGRAMS; p++) {
        zero_traffic one = zero_schedule_traffic(&e->schedule, (zero_program_kind)p, op);
        zero_traffic_add(&sum, e->runner.walks[p], &one);
    }
    return sum;
}

void zero_engine_measured_traffic(const zero_engine *e, zero_op op, zero_traffic *traffic,
                                  zero_duration *duration)
{
    const zero_comm *comm = e->runner.comm;
    const zero_collective_kind *kinds =
        op == ZERO_OP_REDUCE ? zero_reduce_kinds : zero_gather_kinds;
    *traffic = (zero_traffic){0};
    *duration = (zero_duration){0};
    for (int k = 0; k < ZERO_PARTITION_SCHEMES; k++) {
        zero_traffic_add(traffic, 1, &comm->traffic[kinds[k]]);
        duration->total += comm->duration[kinds[k]].total;
        duration->exposed += comm->duration[kinds[k]].exposed;
    }
}

zero_status zero_engine_digest(zero_engine *e, char hex[33])
{
    assert(!e->schedule.input.forward_only);
    return zero_states_digest(&e->runner, hex);
}
