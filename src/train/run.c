#include "train/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/tree.h"
#include "sharding/optimizer.h"

/* One walk: what every instruction may look at. */
struct walk {
    zero_runner *r;
    const zero_run_input *in;
    zero_run_output *out;
    const zero_plan_input *plan;
    zero_batch batch;
    double squares; /* of all gradients that NORM has seen */
};

void *zero_runner_buffer(const zero_runner *r, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    const zero_buffer *b = &r->schedule->buffers[buffer];
    if (!b->shared) return r->arena.base + b->offset;
    return zero_window_array(r->window, b->array) +
           b->bytes * (size_t)r->window->local_rank;
}

/* ---- instructions ---- */

/* The number of a rank's microbatch m in the global batch, by the program's own strides. */
static int64_t microbatch_index(const struct walk *w, const zero_instruction *i, int rank,
                                int m)
{
    return w->in->first_microbatch + (int64_t)rank * i->rank_stride +
           (int64_t)m * i->microbatch_stride;
}

static zero_status load(struct walk *w, const zero_instruction *i)
{
    zero_batch *b = &w->batch;
    size_t input = w->plan->model->input_bytes, target = w->plan->model->target_bytes;
    char *inputs = zero_runner_buffer(w->r, i->tokens);
    char *targets = inputs + (size_t)(b->B * b->T) * input;
    b->first_sample = b->B * microbatch_index(w, i, w->r->comm->rank, i->microbatch);
    for (int64_t s = 0; s < b->B; s++) {
        size_t at = (size_t)(s * b->T);
        w->in->source->sample(w->in->source->arg, w->in->step, b->first_sample + s, b->T,
                              inputs + at * input, targets + at * target);
    }
    b->inputs = inputs;
    b->targets = targets;
    return ZERO_OK;
}

static zero_call make_call(const struct walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    zero_call c = {
        .backend = r->backend,
        .math = &r->math,
        .batch = &w->batch,
        .training = w->in->program == ZERO_PROGRAM_STEP,
        .in = zero_runner_buffer(r, i->in),
        .out = zero_runner_buffer(r, i->out),
        .stream = zero_runner_buffer(r, i->stream),
        .saved = zero_runner_buffer(r, i->saved),
        .work = zero_runner_buffer(r, i->work),
        .logits = zero_runner_buffer(r, i->logits),
        .row_loss = zero_runner_buffer(r, i->row_loss),
    };
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        c.param[k] = zero_runner_buffer(r, i->param[k]);
        c.grad[k] = zero_runner_buffer(r, i->grad[k]);
        c.accumulate[k] = i->accumulate[k];
    }
    return c;
}

/* What the host reads must have been computed. */
static zero_status collect_loss(struct walk *w, const zero_instruction *i)
{
    const float *row = zero_runner_buffer(w->r, i->row_loss);
    if (!row) return ZERO_OK;
    ZERO_TRY(w->r->backend->sync(&w->r->math));
    double sum = 0.0;
    for (int64_t k = 0; k < w->batch.B * w->batch.T; k++) sum += (double)row[k];
    w->r->losses[i->microbatch] = sum;
    return ZERO_OK;
}

static zero_status forward(struct walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    unit->forward(unit, &call);
    if (w->in->program == ZERO_PROGRAM_GENERATE && call.logits) {
        ZERO_TRY(w->r->backend->sync(&w->r->math));
        w->out->logits = call.logits;
    }
    return collect_loss(w, i);
}

static zero_status backward(struct walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    unit->backward(unit, &call);
    return collect_loss(w, i);
}

static zero_status accumulate(struct walk *w, const zero_instruction *i)
{
    float *sum = zero_runner_buffer(w->r, i->buffer);
    const float *leaf = zero_runner_buffer(w->r, i->in);
    w->r->backend->accumulate(&w->r->math, ZERO_FP32,
                              w->plan->model->groups[i->group].n_params, sum, leaf, sum);
    return ZERO_OK;
}

/* Both collectives work in place: a rank's own piece is where its shard stays. */
static float *own_piece(const struct walk *w, const zero_instruction *i)
{
    const zero_partition *p = &w->r->schedule->groups[i->group].partition;
    return (float *)zero_runner_buffer(w->r, i->buffer) + p->shard_len * w->r->comm->rank;
}

static zero_status reduce(struct walk *w, const zero_instruction *i)
{
    ZERO_TRY(w->r->backend->sync(&w->r->math)); /* MPI reads what the backend wrote */
    return zero_collective_begin(&w->r->reduce[i->group],
                                 zero_runner_buffer(w->r, i->buffer), own_piece(w, i),
                                 zero_runner_buffer(w->r, i->staging));
}

static zero_status gather(struct walk *w, const zero_instruction *i)
{
    return zero_collective_begin(&w->r->gather[i->group], own_piece(w, i),
                                 zero_runner_buffer(w->r, i->buffer), NULL);
}

static zero_status reduce_wait(struct walk *w, const zero_instruction *i)
{
    ZERO_TRY(w->r->poll_status);
    return zero_collective_wait(&w->r->reduce[i->group]);
}

static zero_status gather_wait(struct walk *w, const zero_instruction *i)
{
    ZERO_TRY(w->r->poll_status);
    return zero_collective_wait(&w->r->gather[i->group]);
}

static zero_status loss(struct walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    int mine = i->microbatch + 1;
    int64_t all = (int64_t)mine * r->comm->size;
    ZERO_TRY(zero_comm_all_gather_doubles(r->comm, mine, r->losses, r->gathered));
    for (int rank = 0; rank < r->comm->size; rank++)
        for (int m = 0; m < mine; m++)
            r->all_losses[microbatch_index(w, i, rank, m) - w->in->first_microbatch] =
                r->gathered[(int64_t)rank * mine + m];
    double tokens = (double)all * (double)(w->batch.B * w->batch.T);
    w->out->loss = zero_tree_sum_scalars(all, r->all_losses) / tokens;
    return ZERO_OK;
}

static zero_status norm(struct walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    w->squares += r->backend->sum_squares(&r->math, ZERO_FP32,
                                          w->plan->model->groups[i->group].n_params,
                                          zero_runner_buffer(r, i->grad[0]));
    return ZERO_OK;
}

/* Squares of floats cannot overflow a double, so the norm is finite if and only if every
 * gradient is. */
static zero_status overflow(struct walk *w, const zero_instruction *i)
{
    (void)i;
    w->out->grad_norm = sqrt(w->squares);
    return zero_comm_any(w->r->comm, !isfinite(w->out->grad_norm), &w->out->overflow);
}

static zero_status update(struct walk *w, const zero_instruction *i)
{
    if (w->out->overflow) return ZERO_OK;
    const zero_runner *r = w->r;
    zero_optimizer_state state = {.grad = zero_runner_buffer(r, i->grad[0]),
                                  .param = zero_runner_buffer(r, i->param[0]),
                                  .momentum = zero_runner_buffer(r, i->momentum),
                                  .variance = zero_runner_buffer(r, i->variance)};
    zero_adamw hyper = w->in->adamw;
    double scale = w->in->clip > 0.0 ? w->in->clip / (w->out->grad_norm + 1e-6) : 1.0;
    hyper.grad_scale = scale < 1.0 ? (float)scale : 1.0f;
    zero_range all = {0, w->plan->model->groups[i->group].n_params};
    zero_optimizer_update(r->backend, &r->math, w->plan->model, i->group, all, &hyper,
                          &state);
    return ZERO_OK;
}

static zero_status (*const execute[ZERO_OP_KINDS])(struct walk *,
                                                   const zero_instruction *) = {
    [ZERO_OP_LOAD] = load,         [ZERO_OP_FORWARD] = forward,
    [ZERO_OP_BACKWARD] = backward, [ZERO_OP_ACCUMULATE] = accumulate,
    [ZERO_OP_REDUCE] = reduce,     [ZERO_OP_REDUCE_WAIT] = reduce_wait,
    [ZERO_OP_GATHER] = gather,     [ZERO_OP_GATHER_WAIT] = gather_wait,
    [ZERO_OP_LOSS] = loss,         [ZERO_OP_NORM] = norm,
    [ZERO_OP_OVERFLOW] = overflow, [ZERO_OP_UPDATE] = update,
};

/* ---- walking ---- */

/* Lifetimes as the sanitizer sees them: a buffer is usable from its first instruction to its
 * last. Nothing happens in other builds. */
static void mark_operands(const zero_runner *r, const zero_instruction *i, int at,
                          bool before)
{
    int list[ZERO_MAX_OPERANDS];
    int n = zero_instruction_operands(i, list);
    for (int k = 0; k < n; k++) {
        if (list[k] == ZERO_NO_BUFFER) continue;
        const zero_buffer *b = &r->schedule->buffers[list[k]];
        if (b->program == ZERO_PROGRAM_ALL) continue;
        if (before && b->first == at)
            zero_arena_unpoison(r->arena.base + b->offset, b->bytes);
        if (!before && b->last == at)
            zero_arena_poison(r->arena.base + b->offset, b->bytes);
    }
}

static zero_batch make_batch(const zero_plan_input *plan, const zero_run_input *in,
                             int n_ranks)
{
    if (in->program == ZERO_PROGRAM_GENERATE)
        return (zero_batch){.B = 1, .T = in->T, .inputs = in->prompt};
    int64_t tokens = plan->micro_batch * plan->seq * plan->accumulation * n_ranks;
    return (zero_batch){.B = plan->micro_batch,
                        .T = plan->seq,
                        .step = in->step,
                        .loss_seed = (float)(1.0 / (double)tokens)};
}

zero_status zero_runner_run(zero_runner *r, const zero_run_input *input,
                            zero_run_output *output)
{
    const zero_program *p = &r->schedule->programs[input->program];
    *output = (zero_run_output){0};
    struct walk w = {.r = r, .in = input, .out = output, .plan = &r->schedule->input};
    w.batch = make_batch(w.plan, input, r->comm->size);
    zero_arena_poison(r->arena.base + r->schedule->persistent_bytes,
                      r->schedule->arena_bytes - r->schedule->persistent_bytes);
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        double start = zero_clock_seconds();
        mark_operands(r, i, at, true);
        ZERO_TRY(execute[i->op](&w, i));
        /* Generated logits outlive their program: the caller reads them. */
        if (input->program != ZERO_PROGRAM_GENERATE) mark_operands(r, i, at, false);
        r->seconds[input->program][i->op] += zero_clock_seconds() - start;
    }
    return ZERO_OK;
}

/* ---- set-up ---- */

static void poll(void *arg)
{
    zero_runner *r = arg;
    if (r->poll_status == ZERO_OK) r->poll_status = zero_collective_poll(r->comm);
}

static zero_status init_collectives(zero_runner *r)
{
    int n_groups = r->schedule->input.model->n_groups;
    r->reduce = calloc((size_t)n_groups, sizeof *r->reduce);
    r->gather = calloc((size_t)n_groups, sizeof *r->gather);
    if (!r->reduce || !r->gather)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the collectives of %d groups",
                         n_groups);
    for (int g = 0; g < n_groups; g++) {
        zero_collective_spec reduce =
            zero_schedule_collective(r->schedule, ZERO_OP_REDUCE, g);
        zero_collective_spec gather =
            zero_schedule_collective(r->schedule, ZERO_OP_GATHER, g);
        ZERO_TRY(zero_collective_init(&r->reduce[g], r->comm, &reduce));
        ZERO_TRY(zero_collective_init(&r->gather[g], r->comm, &gather));
    }
    return ZERO_OK;
}

static zero_status init_local(zero_runner *r)
{
    const zero_plan_input *plan = &r->schedule->input;
    size_t mine = (size_t)plan->accumulation, ranks = (size_t)r->comm->size;
    r->losses = calloc(mine, sizeof *r->losses);
    r->gathered = calloc(mine * ranks, sizeof *r->gathered);
    r->all_losses = calloc(mine * ranks, sizeof *r->all_losses);
    if (!r->losses || !r->gathered || !r->all_losses)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the losses of %zu microbatches",
                         mine * ranks);
    ZERO_TRY(init_collectives(r));
    return zero_arena_init(&r->arena, r->schedule->arena_bytes);
}

zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                              zero_window *window)
{
    size_t *bytes = calloc((size_t)schedule->n_arrays + 1, sizeof *bytes);
    zero_status st =
        bytes ? ZERO_OK
              : zero_fail(ZERO_ERR_NOMEM, "no memory for %d arrays", schedule->n_arrays);
    st = zero_agree(comm, st);
    for (int b = 0; st == ZERO_OK && b < schedule->n_buffers; b++)
        if (schedule->buffers[b].shared)
            bytes[schedule->buffers[b].array] = schedule->buffers[b].bytes;
    if (st == ZERO_OK) st = zero_window_init(window, comm, schedule->n_arrays, bytes);
    free(bytes);
    return st;
}

zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                             const zero_backend *backend, zero_comm *comm,
                             const zero_window *window)
{
    *r = (zero_runner){
        .schedule = schedule, .backend = backend, .comm = comm, .window = window};
    r->math = (zero_math){.poll = poll, .poll_arg = r};
    zero_status st = backend->open(&r->math);
    if (st == ZERO_OK) st = init_local(r);
    st = zero_agree(comm, st);
    if (st != ZERO_OK) zero_runner_destroy(r);
    return st;
}

void zero_runner_destroy(zero_runner *r)
{
    int n_groups = r->schedule ? r->schedule->input.model->n_groups : 0;
    for (int g = 0; g < n_groups; g++) {
        if (r->reduce) zero_collective_destroy(&r->reduce[g]);
        if (r->gather) zero_collective_destroy(&r->gather[g]);
    }
    free(r->reduce);
    free(r->gather);
    free(r->losses);
    free(r->gathered);
    free(r->all_losses);
    zero_arena_destroy(&r->arena);
    *r = (zero_runner){0};
}
