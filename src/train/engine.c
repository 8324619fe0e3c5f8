#include "train/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/tree.h"

zero_group_arrays zero_engine_group(const zero_engine *e, int group)
{
    const zero_group_state *g = &e->schedule.groups[group];
    return (zero_group_arrays){.param = zero_runner_buffer(&e->runner, g->param),
                               .grad = zero_runner_buffer(&e->runner, g->grad),
                               .momentum = zero_runner_buffer(&e->runner, g->momentum),
                               .variance = zero_runner_buffer(&e->runner, g->variance)};
}

static int64_t eval_microbatches(const zero_engine *e)
{
    const zero_plan_input *plan = &e->schedule.input;
    return e->spec.eval_batches * plan->accumulation * plan->n_ranks;
}

/* A run that the system's out-of-memory killer would end is refused instead. */
static zero_status check_memory(const zero_engine *e)
{
    double needed = (double)(e->schedule.arena_bytes + e->schedule.window_bytes);
    double limit = (double)e->spec.memory_limit;
    if (limit <= 0.0 || needed <= limit) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_NOMEM,
        "the plan needs %.2f GiB per rank and %.2f GiB are there for it: use more "
        "nodes, a smaller --micro-batch or --seq, or a smaller model",
        needed / 0x1p30, limit / 0x1p30);
}

static zero_status init_local(zero_engine *e, const zero_engine_spec *spec,
                              const zero_comm *comm)
{
    if (spec->plan.n_ranks != comm->size)
        return zero_fail(ZERO_ERR_INVALID, "a plan for %d ranks cannot run on %d",
                         spec->plan.n_ranks, comm->size);
    e->spec = *spec;
    ZERO_TRY(zero_schedule_compile(&e->schedule, &spec->plan));
    ZERO_TRY(check_memory(e));
    e->eval_losses = calloc((size_t)eval_microbatches(e) + 1, sizeof *e->eval_losses);
    if (e->eval_losses) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the losses of %" PRId64 " microbatches",
                     eval_microbatches(e));
}

static void init_weights(zero_engine *e)
{
    const zero_model *model = e->schedule.input.model;
    for (int g = 0; g < model->n_groups; g++)
        zero_model_init_params(model, g, e->spec.seed, 0,
                               zero_partition_padded(&e->schedule.groups[g].partition),
                               zero_engine_group(e, g).param);
}

/* The same plan with messages alone. */
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
    if (e->schedule.n_arrays == 0) return ZERO_OK;
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
    if (st == ZERO_OK)
        init_weights(e);
    else
        zero_engine_destroy(e);
    return st;
}

void zero_engine_destroy(zero_engine *e)
{
    zero_runner_destroy(&e->runner);
    zero_window_destroy(&e->window);
    zero_schedule_destroy(&e->schedule);
    free(e->eval_losses);
    *e = (zero_engine){0};
}

zero_status zero_engine_step(zero_engine *e, const zero_source *source,
                             const zero_step_input *in, zero_run_output *out)
{
    zero_run_input run = {.program = ZERO_PROGRAM_STEP,
                          .source = source,
                          .step = in->step,
                          .clip = in->clip,
                          .adamw = {.lr = (float)in->lr,
                                    .beta1 = (float)in->beta1,
                                    .beta2 = (float)in->beta2,
                                    .eps = (float)in->eps,
                                    .weight_decay = (float)in->weight_decay,
                                    .step = e->adam_steps + 1}};
    ZERO_TRY(zero_runner_run(&e->runner, &run, out));
    if (out->overflow)
        return zero_fail(ZERO_ERR_DIVERGED,
                         "step %" PRId64 ": the gradient is not finite (loss %g, norm %g, "
                         "learning rate %g); the parameters are those of the step before. "
                         "Try a smaller --lr, a longer --warmup or a smaller --clip",
                         in->step + 1, out->loss, out->grad_norm, in->lr);
    e->adam_steps++;
    return ZERO_OK;
}

zero_status zero_engine_evaluate(zero_engine *e, const zero_source *source, double *loss)
{
    const zero_plan_input *plan = &e->schedule.input;
    int64_t total = eval_microbatches(e);
    zero_run_input run = {.program = ZERO_PROGRAM_EVALUATE, .source = source};
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

/* Draws from softmax(logits / temperature) over the known ids with one uniform number. */
static int32_t draw(const float *logits, int64_t n, double temperature, double uniform)
{
    double most = -INFINITY, sum = 0.0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(((double)logits[i] - most) / temperature);
    double left = uniform * sum;
    for (int64_t i = 0; i < n; i++) {
        left -= exp(((double)logits[i] - most) / temperature);
        if (left < 0.0) return (int32_t)i;
    }
    return (int32_t)(n - 1);
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
        zero_run_input run = {
            .program = ZERO_PROGRAM_GENERATE, .prompt = text + at - T, .T = T};
        zero_run_output out;
        ZERO_TRY(zero_runner_run(&e->runner, &run, &out));
        text[at] = draw(out.logits, how->known, how->temperature,
                        zero_rng_uniform(&rng, (uint64_t)at));
        /* Ranks compute the same bits on equal machines; on unequal ones, rank 0 decides. */
        ZERO_TRY(zero_comm_broadcast(e->runner.comm, 0, &text[at], sizeof text[at]));
    }
    return ZERO_OK;
}

static zero_status digest_local(const zero_engine *e, char hex[33])
{
    const zero_model *model = e->schedule.input.model;
    zero_group_view *views = calloc((size_t)model->n_groups, sizeof *views);
    if (!views)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d groups", model->n_groups);
    for (int g = 0; g < model->n_groups; g++) {
        zero_group_arrays a = zero_engine_group(e, g);
        views[g] = (zero_group_view){a.param, a.momentum, a.variance};
    }
    zero_status st = zero_digest(model, views, hex);
    free(views);
    return st;
}

/* In stage 0 every rank holds the whole state and computes the same digest. */
zero_status zero_engine_digest(zero_engine *e, char hex[33])
{
    return zero_agree(e->runner.comm, digest_local(e, hex));
}
