#include "engine/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/tree.h"
#include "comm/watch.h"
#include "engine/plan.h"

#define WEIGHTS_AT_ONCE ((int64_t)1 << 20) /* floats; a checkpoint reads such blocks */

zero_engine_state zero_engine_group(const zero_engine *e, int group)
{
    const zero_group_state *g = &e->schedule.groups[group];
    const zero_runner *r = &e->runner;
    zero_range range = {0, g->partition.n_params};
    if (g->optimizer_held == ZERO_HOLD_PIECE)
        range = zero_partition_shard(&g->partition, r->comm->rank);
    bool is_exact = e->schedule.input.type == ZERO_FP32; /* its own master */
    int master = is_exact ? g->param : g->master;
    return (zero_engine_state){.range = range,
                               .master = zero_runner_element(r, master, range.begin),
                               .momentum = zero_runner_element(r, g->momentum, range.begin),
                               .variance =
                                   zero_runner_element(r, g->variance, range.begin)};
}

static int64_t eval_microbatches(const zero_engine *e)
{
    const zero_plan_input *plan = &e->schedule.input;
    return e->spec.eval_batches * plan->accumulation * plan->n_ranks;
}

/* A run that the system's out-of-memory killer would end is refused instead. */
static zero_status check_memory(const zero_engine *e)
{
    double needed = (double)zero_plan_needed(&e->schedule);
    double limit = (double)e->spec.memory_limit;
    if (limit <= 0.0 || needed <= limit) return ZERO_OK;
    if (e->spec.plan.forward_only)
        return zero_fail(ZERO_ERR_NOMEM,
                         "the model needs %.1f MiB per rank and %.1f MiB are there for it: "
                         "use more ranks and a higher --stage",
                         needed / 0x1p20, limit / 0x1p20);
    return zero_fail(
        ZERO_ERR_NOMEM,
        "the plan needs %.1f MiB per rank and %.1f MiB are there for it: use more "
        "nodes, a smaller --micro-batch or --seq, --recompute, a higher --stage, or a "
        "smaller model",
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
    const zero_runner *r = &e->runner;
    ZERO_TRY(zero_engine_settle(e));
    for (int g = 0; g < e->schedule.input.model->n_groups; g++) {
        const zero_group_state *state = &e->schedule.groups[g];
        zero_engine_state own = zero_engine_group(e, g);
        if (state->master == ZERO_NO_BUFFER) continue;
        r->backend->round(&r->math, e->schedule.input.type, zero_range_len(own.range),
                          own.master,
                          zero_runner_element(r, state->param, own.range.begin));
    }
    ZERO_TRY(r->backend->sync(&r->math));
    ZERO_TRY(zero_comm_barrier(r->comm)); /* neighbours read what lies once per node */
    return walk(e, ZERO_PROGRAM_PROLOGUE);
}

/* Where there are masters, whole pieces at once. */
static zero_status fill_masters(zero_engine *e, const zero_weights *weights, int g)
{
    zero_engine_state own = zero_engine_group(e, g);
    return zero_weights_fill(weights, e->schedule.input.model, g, own.range, own.master);
}

/* 16-bit parameters that are all there is: through `chunk`. */
static zero_status fill_rounded(zero_engine *e, const zero_weights *weights, int g,
                                float *chunk)
{
    const zero_runner *r = &e->runner;
    const zero_plan_input *plan = &e->schedule.input;
    zero_range own = zero_engine_group(e, g).range;
    for (int64_t at = own.begin; at < own.end; at += WEIGHTS_AT_ONCE) {
        zero_range part = {at,
                           at + WEIGHTS_AT_ONCE < own.end ? at + WEIGHTS_AT_ONCE : own.end};
        ZERO_TRY(zero_weights_fill(weights, plan->model, g, part, chunk));
        r->backend->round(&r->math, plan->type, zero_range_len(part), chunk,
                          zero_runner_element(r, e->schedule.groups[g].param, at));
        ZERO_TRY(r->backend->sync(&r->math)); /* the next part overwrites the chunk */
    }
    return ZERO_OK;
}

static zero_status fill_weights(zero_engine *e, const zero_weights *weights)
{
    const zero_plan_input *plan = &e->schedule.input;
    bool has_masters = plan->type == ZERO_FP32 || !plan->forward_only;
    float *chunk = has_masters ? NULL : malloc(WEIGHTS_AT_ONCE * sizeof *chunk);
    zero_status st = ZERO_OK;
    if (!has_masters && !chunk)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory to round %" PRId64 " weights",
                       WEIGHTS_AT_ONCE);
    for (int g = 0; st == ZERO_OK && g < plan->model->n_groups; g++)
        st = has_masters ? fill_masters(e, weights, g) : fill_rounded(e, weights, g, chunk);
    free(chunk);
    return st;
}

zero_status zero_engine_set_weights(zero_engine *e, const zero_weights *weights)
{
    zero_comm *comm = e->runner.comm;
    ZERO_TRY(zero_engine_settle(e)); /* a gather reads what is written here */
    ZERO_TRY(zero_agree_after_files(comm, fill_weights(e, weights)));
    return zero_engine_publish(e);
}

static zero_status init_weights(zero_engine *e)
{
    zero_drawn_weights drawn = {e->schedule.input.model, e->spec.seed};
    zero_weights random = zero_weights_drawn(&drawn);
    const zero_weights *given = e->spec.weights;
    e->spec.weights = NULL; /* borrowed until here */
    return zero_engine_set_weights(e, given ? given : &random);
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
    /* Too late for a verdict: what is in flight must not outlive its buffers. */
    if (e->in_flight && zero_engine_settle(e) != ZERO_OK) e->in_flight = false;
    zero_runner_destroy(&e->runner);
    zero_window_destroy(&e->window);
    zero_schedule_destroy(&e->schedule);
    free(e->eval_losses);
    *e = (zero_engine){0};
}

/* ---- a step ---- */

/* Where ranks met their first number that is not finite: the earliest, and whose it is. */
static zero_status earliest_origin(zero_engine *e, zero_origin *origin, int *rank)
{
    int size = e->runner.comm->size;
    double mine[] = {origin->at, origin->unit, origin->tensor, origin->microbatch};
    double *all = malloc((size_t)size * sizeof mine);
    zero_status st =
        all ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for %d ranks", size);
    st = zero_agree(e->runner.comm, st);
    if (st == ZERO_OK) st = zero_comm_all_gather_doubles(e->runner.comm, 4, mine, all);
    *rank = -1;
    for (int r = 0; st == ZERO_OK && r < size; r++) {
        const double *of = all + 4 * r;
        if (of[0] < 0.0 || (*rank >= 0 && (int)of[0] >= origin->at)) continue;
        *origin = (zero_origin){(int)of[0], (int)of[1], (int)of[2], (int)of[3]};
        *rank = r;
    }
    free(all);
    return st;
}

static void describe_origin(const zero_plan_input *plan, const zero_origin *o, int rank,
                            char *text, size_t size)
{
    const zero_model *model = plan->model;
    if (rank < 0)
        snprintf(text, size, "all ranks' own gradients are finite, but not their sum");
    else if (o->tensor < 0)
        snprintf(text, size,
                 "it begins in the forward pass of %s, on rank %d, microbatch %d",
                 model->units[o->unit].name, rank, o->microbatch);
    else if (o->unit < 0)
        snprintf(
            text, size,
            "it begins where the gradient of %s is rounded to %s or added, on rank %d, "
            "microbatch %d",
            model->tensors[o->tensor].name, zero_type_name(plan->type), rank,
            o->microbatch);
    else
        snprintf(text, size,
                 "it begins in the gradient of %s, in the backward pass of %s, on rank %d, "
                 "microbatch %d",
                 model->tensors[o->tensor].name, model->units[o->unit].name, rank,
                 o->microbatch);
}

/* Nothing was updated, so the same step gives the same numbers: once more, looking. */
static zero_status tell_divergence(zero_engine *e, const zero_run_input *run,
                                   const zero_run_output *out)
{
    zero_run_input again = *run;
    zero_run_output found;
    int rank;
    char where[256];
    again.finds_origin = true;
    ZERO_TRY(zero_runner_run(&e->runner, &again, &found));
    ZERO_TRY(earliest_origin(e, &found.origin, &rank));
    describe_origin(&e->schedule.input, &found.origin, rank, where, sizeof where);
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
    e->in_flight = false; /* what a failure leaves there nobody can wait for */
    ZERO_TRY(zero_runner_run(&e->runner, &run, out));
    e->in_flight = true;
    e->adam_steps += !out->overflow;
    e->skipped += out->overflow;
    /* After the update: gradients were unscaled with the scale that made them. */
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
        /* Ranks compute the same bits on equal machines; on unequal ones, rank 0 decides. */
        ZERO_TRY(zero_comm_broadcast(e->runner.comm, 0, &text[at], sizeof text[at]));
        if (text[at] < 0)
            return zero_fail(ZERO_ERR_DIVERGED,
                             "the model's logits after %" PRId64
                             " tokens are not finite: its weights are not, or too large "
                             "for %s",
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

static zero_status digest(zero_engine *e, const zero_partition **partitions,
                          zero_group_view *views, char hex[33])
{
    const zero_model *model = e->schedule.input.model;
    zero_status st = ZERO_OK;
    if (!partitions || !views)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for %d groups", model->n_groups);
    ZERO_TRY(zero_agree(e->runner.comm, st));
    for (int g = 0; g < model->n_groups; g++) {
        zero_engine_state own = zero_engine_group(e, g);
        partitions[g] = &e->schedule.groups[g].partition;
        views[g] = (zero_group_view){own.master, own.momentum, own.variance, own.range};
    }
    return zero_digest(model, e->runner.comm, partitions, views, hex);
}

zero_status zero_engine_digest(zero_engine *e, char hex[33])
{
    assert(!e->schedule.input.forward_only);
    size_t n = (size_t)e->schedule.input.model->n_groups;
    const zero_partition **partitions = calloc(n, sizeof *partitions);
    zero_group_view *views = calloc(n, sizeof *views);
    zero_status st = digest(e, partitions, views, hex);
    free(partitions);
    free(views);
    return st;
}
