#include "engine/run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "engine/run_memory.h"
#include "sharding/schedule_exchange.h"
#include "sharding/update.h"

/* One walk: what every instruction may look at. */
struct walk {
    zero_runner *r;
    const zero_run_input *in;
    zero_run_output *out;
    const zero_plan_input *plan;
    zero_batch batch;
    int at; /* the instruction */
};

/* ---- operands ---- */

/* What an instruction resolves, it uses: the ledger is measured here. */
static void *use(const struct walk *w, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    zero_touch_note(&w->r->touched[buffer], w->at);
    return zero_runner_buffer(w->r, buffer);
}

static void *use_element(const struct walk *w, int buffer, int64_t i)
{
    if (buffer == ZERO_NO_BUFFER) return NULL;
    zero_touch_note(&w->r->touched[buffer], w->at);
    return zero_runner_element(w->r, buffer, i);
}

static zero_type type_of(const struct walk *w, int buffer)
{
    return w->r->schedule->buffers[buffer].type;
}

static zero_range own_piece(const struct walk *w, int g)
{
    return zero_partition_piece(&w->r->schedule->groups[g].partition, w->r->comm->rank);
}

/* ---- data and units ---- */

/* The number of a rank's microbatch m in the global batch, by the program's own strides. */
static int64_t microbatch_index(const struct walk *w, const zero_instruction *i, int rank,
                                int m)
{
    return w->in->first_microbatch + (int64_t)rank * i->rank_stride +
           (int64_t)m * i->microbatch_stride;
}

static zero_status load(struct walk *w, const zero_instruction *i)
{
    const zero_model *model = w->plan->model;
    zero_batch *b = &w->batch;
    size_t input = (size_t)b->T * model->input_bytes;
    size_t target = (size_t)b->T * model->target_bytes;
    char *inputs = use(w, i->tokens);
    char *targets = inputs + zero_schedule_targets_at(model, b->B * b->T);
    b->first_sample = b->B * microbatch_index(w, i, w->r->comm->rank, i->microbatch);
    for (int64_t s = 0; s < b->B; s++)
        w->in->source->sample(w->in->source->arg, w->in->step, b->first_sample + s, b->T,
                              inputs + (size_t)s * input, targets + (size_t)s * target);
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
        .type = w->plan->type,
        .in = use(w, i->in),
        .out = use(w, i->out),
        .stream = use(w, i->stream),
        .saved = use(w, i->saved),
        .work = use(w, i->work),
        .logits = use(w, i->logits),
        .row_loss = use(w, i->row_loss),
    };
    use(w, i->tokens); /* the batch points there */
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        c.param[k] = use(w, i->param[k]);
        c.grad[k] = use(w, i->grad[k]);
        c.accumulate[k] = i->accumulate[k];
    }
    return c;
}

/* What the host reads must have been computed. */
static zero_status collect_loss(struct walk *w, const zero_instruction *i)
{
    const float *row = use(w, i->row_loss);
    if (!row) return ZERO_OK;
    ZERO_TRY(w->r->backend->sync(&w->r->math));
    double sum = 0.0;
    for (int64_t k = 0; k < w->batch.B * w->batch.T; k++) sum += (double)row[k];
    w->r->losses[i->microbatch] = sum;
    return ZERO_OK;
}

static void note_origin(struct walk *w, const zero_instruction *i, int tensor)
{
    if (w->out->origin.at >= 0) return;
    w->out->origin = (zero_origin){
        .at = w->at, .unit = i->unit, .tensor = tensor, .microbatch = i->microbatch};
}

/* Squares of floats cannot overflow a double: the sum is finite exactly if all of x is. */
static bool is_finite(const struct walk *w, int64_t n, const float *x)
{
    return isfinite(w->r->backend->sum_squares(&w->r->math, ZERO_FP32, n, x));
}

static void look_at_output(struct walk *w, const zero_instruction *i, const zero_unit *unit,
                           const float *out)
{
    zero_unit_sizes size = unit->sizes(unit, w->batch.B, w->batch.T);
    if (w->in->finds_origin && !is_finite(w, size.out, out)) note_origin(w, i, -1);
}

static void look_at_gradients(struct walk *w, const zero_instruction *i,
                              const zero_unit *unit, const zero_call *call)
{
    const zero_model *model = w->plan->model;
    for (int k = 0; w->in->finds_origin && k < unit->n_groups; k++) {
        const zero_group *g = &model->groups[unit->groups[k]];
        for (int t = g->first_tensor; t < g->first_tensor + g->n_tensors; t++) {
            const zero_tensor *tensor = &model->tensors[t];
            if (!is_finite(w, tensor->rows * tensor->cols, call->grad[k] + tensor->offset))
                note_origin(w, i, t);
        }
    }
}

/* What was finite in the backward pass may be too large for 16 bits, or once it is added. */
static void look_at_sum(struct walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    const zero_group *g = &w->plan->model->groups[i->group];
    zero_type type = type_of(w, i->buffer);
    for (int t = g->first_tensor; w->in->finds_origin && t < g->first_tensor + g->n_tensors;
         t++) {
        const zero_tensor *tensor = &w->plan->model->tensors[t];
        int64_t from = tensor->offset, to = from + tensor->rows * tensor->cols;
        if (from < i->range.begin) from = i->range.begin;
        if (to > i->range.end) to = i->range.end;
        if (from < to && !isfinite(r->backend->sum_squares(
                             &r->math, type, to - from, use_element(w, i->buffer, from))))
            note_origin(w, i, t);
    }
}

static zero_status forward(struct walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    unit->forward(unit, &call);
    look_at_output(w, i, unit, call.out);
    if (w->in->program == ZERO_PROGRAM_GENERATE && call.logits) {
        ZERO_TRY(w->r->backend->sync(&w->r->math));
        w->out->logits = call.logits;
    }
    return collect_loss(w, i);
}

/* The padding of a gradient is sent and added as well: it must be zero. */
static void clear_padding(const struct walk *w, const zero_unit *unit,
                          const zero_call *call)
{
    for (int k = 0; k < unit->n_groups; k++) {
        const zero_partition *p = &w->r->schedule->groups[unit->groups[k]].partition;
        if (!call->accumulate[k])
            w->r->backend->clear(&w->r->math, p->padded - p->n_params,
                                 call->grad[k] + p->n_params);
    }
}

static zero_status backward(struct walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    clear_padding(w, unit, &call);
    unit->backward(unit, &call);
    look_at_gradients(w, i, unit, &call);
    return collect_loss(w, i);
}

/* ---- gradients and parameters ---- */

static zero_status round_group(struct walk *w, const zero_instruction *i)
{
    w->r->backend->round(&w->r->math, type_of(w, i->buffer), zero_range_len(i->range),
                         use_element(w, i->in, i->range.begin),
                         use_element(w, i->buffer, i->range.begin));
    look_at_sum(w, i);
    return ZERO_OK;
}

static zero_status accumulate(struct walk *w, const zero_instruction *i)
{
    w->r->backend->accumulate(&w->r->math, i->type, zero_range_len(i->range),
                              use_element(w, i->sum, i->range.begin),
                              use_element(w, i->in, i->range.begin),
                              use_element(w, i->buffer, i->range.begin));
    look_at_sum(w, i);
    return ZERO_OK;
}

static char *staging_at(const struct walk *w, const zero_instruction *i, int k)
{
    char *staging = use(w, i->staging);
    return staging ? staging + zero_schedule_staging(w->r->schedule, i->op, i->group, k)
                   : NULL;
}

/* Of pieces with owners: the k-th one's begin, and whether this rank is the owner. */
static int64_t owned_piece(const struct walk *w, int g, int k, bool *mine)
{
    const zero_partition *p = &w->r->schedule->groups[g].partition;
    int root = (int)zero_partition_owners(p).begin + k;
    *mine = root == w->r->comm->rank;
    return zero_partition_piece(p, root).begin;
}

static bool is_sliced(const struct walk *w)
{
    return w->plan->partition == ZERO_PARTITION_SLICE;
}

static zero_status reduce(struct walk *w, const zero_instruction *i)
{
    zero_runner_exchange *x = &w->r->reduce[i->group];
    ZERO_TRY(w->r->backend->sync(&w->r->math)); /* MPI reads what the backend wrote */
    int64_t own = own_piece(w, i->group).begin;
    if (is_sliced(w))
        return zero_collective_begin(&x->ops[0], use(w, i->in),
                                     use_element(w, i->buffer, own), staging_at(w, i, 0));
    use(w, i->buffer);
    for (int k = 0; k < x->n; k++) {
        bool mine;
        int64_t begin = owned_piece(w, i->group, k, &mine);
        ZERO_TRY(zero_collective_begin(&x->ops[k], use_element(w, i->in, begin),
                                       mine ? use_element(w, i->buffer, begin) : NULL,
                                       staging_at(w, i, k)));
    }
    return ZERO_OK;
}

static zero_status gather(struct walk *w, const zero_instruction *i)
{
    zero_runner_exchange *x = &w->r->gather[i->group];
    ZERO_TRY(w->r->backend->sync(&w->r->math));
    int64_t own = own_piece(w, i->group).begin;
    if (is_sliced(w))
        return zero_collective_begin(&x->ops[0], use_element(w, i->in, own),
                                     use(w, i->buffer), staging_at(w, i, 0));
    use(w, i->in);
    for (int k = 0; k < x->n; k++) {
        bool mine;
        int64_t begin = owned_piece(w, i->group, k, &mine);
        ZERO_TRY(
            zero_collective_begin(&x->ops[k], mine ? use_element(w, i->in, begin) : NULL,
                                  use_element(w, i->buffer, begin), staging_at(w, i, k)));
    }
    return ZERO_OK;
}

/* Until here the collective used its buffers. */
static zero_status wait_for(struct walk *w, const zero_instruction *i,
                            zero_runner_exchange *x)
{
    ZERO_TRY(w->r->poll_status);
    for (int k = 0; k < x->n; k++) ZERO_TRY(zero_collective_wait(&x->ops[k]));
    use(w, i->in);
    use(w, i->buffer);
    use(w, i->staging);
    return ZERO_OK;
}

static zero_status reduce_wait(struct walk *w, const zero_instruction *i)
{
    return wait_for(w, i, &w->r->reduce[i->group]);
}

static zero_status gather_wait(struct walk *w, const zero_instruction *i)
{
    return wait_for(w, i, &w->r->gather[i->group]);
}

static zero_status release(struct walk *w, const zero_instruction *i)
{
    use(w, i->buffer);
    return ZERO_OK;
}

/* ---- the end of a step ---- */

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
    double positions = (double)all * (double)(w->batch.B * w->batch.T);
    w->out->loss = zero_tree_sum_scalars(all, r->all_losses) / positions;
    return ZERO_OK;
}

/* The squares of the own shard. */
static zero_status norm(struct walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    r->squares[i->group] =
        zero_gradient_squares(r->backend, &r->math, type_of(w, i->grad[0]),
                              w->plan->model->groups[i->group].n_params, i->range,
                              use_element(w, i->grad[0], i->range.begin));
    return ZERO_OK;
}

/* Squares of floats cannot overflow a double, so the norm is finite if and only if every
 * gradient is. */
static zero_status overflow(struct walk *w, const zero_instruction *i)
{
    (void)i;
    const zero_runner *r = w->r;
    int n_groups = w->plan->model->n_groups;
    double squares = 0.0;
    ZERO_TRY(zero_comm_merge_spans(r->comm, n_groups, r->squares));
    for (int g = 0; g < n_groups; g++) squares += zero_tree_span_sum(&r->squares[g]);
    w->out->grad_norm = sqrt(squares) / w->in->loss_scale;
    return zero_comm_any(r->comm, !isfinite(squares), &w->out->overflow);
}

static zero_status update(struct walk *w, const zero_instruction *i)
{
    if (w->out->overflow) return ZERO_OK;
    const zero_runner *r = w->r;
    int64_t at = i->range.begin;
    zero_update_state state = {.type = w->plan->type,
                               .grad = use_element(w, i->grad[0], at),
                               .param = use_element(w, i->param[0], at),
                               .master = use_element(w, i->master, at),
                               .momentum = use_element(w, i->momentum, at),
                               .variance = use_element(w, i->variance, at)};
    if (!state.master) { /* fp32: the parameter is its own master */
        state.master = state.param;
        state.param = NULL;
    }
    zero_adamw hyper = w->in->adamw;
    hyper.grad_scale =
        zero_update_grad_scale(w->out->grad_norm, w->in->clip, w->in->loss_scale);
    zero_update_apply(r->backend, &r->math, w->plan->model, i->group, i->range, &hyper,
                      &state);
    return ZERO_OK;
}

static zero_status (*const execute[ZERO_OP_KINDS])(struct walk *,
                                                   const zero_instruction *) = {
    [ZERO_OP_LOAD] = load,
    [ZERO_OP_GATHER] = gather,
    [ZERO_OP_GATHER_WAIT] = gather_wait,
    [ZERO_OP_FORWARD] = forward,
    [ZERO_OP_RECOMPUTE] = forward,
    [ZERO_OP_BACKWARD] = backward,
    [ZERO_OP_RELEASE] = release,
    [ZERO_OP_ROUND] = round_group,
    [ZERO_OP_ACCUMULATE] = accumulate,
    [ZERO_OP_REDUCE] = reduce,
    [ZERO_OP_REDUCE_WAIT] = reduce_wait,
    [ZERO_OP_LOSS] = loss,
    [ZERO_OP_NORM] = norm,
    [ZERO_OP_OVERFLOW] = overflow,
    [ZERO_OP_UPDATE] = update,
};

/* ---- walking ---- */

static zero_batch make_batch(const zero_plan_input *plan, const zero_run_input *in,
                             int n_ranks)
{
    if (in->program == ZERO_PROGRAM_GENERATE)
        return (zero_batch){.B = 1, .T = in->T, .inputs = in->prompt};
    int64_t positions = plan->micro_batch * plan->seq * plan->accumulation * n_ranks;
    return (zero_batch){.B = plan->micro_batch,
                        .T = plan->seq,
                        .step = in->step,
                        .loss_seed = (float)(in->loss_scale / (double)positions)};
}

zero_status zero_runner_run(zero_runner *r, const zero_run_input *input,
                            zero_run_output *output)
{
    const zero_schedule *s = r->schedule;
    const zero_program *p = &s->programs[input->program];
    *output = (zero_run_output){.origin.at = -1};
    struct walk w = {.r = r, .in = input, .out = output, .plan = &s->input};
    w.batch = make_batch(w.plan, input, r->comm->size);
    zero_lifetimes_open(r);
    double start = zero_clock_seconds();
    for (w.at = 0; w.at < p->length; w.at++) {
        const zero_instruction *i = &p->code[w.at];
        double polled = r->polled;
        zero_lifetimes_begin(r, i, w.at);
        ZERO_TRY(execute[i->op](&w, i));
        /* Generated logits outlive their program: the caller reads them. */
        if (input->program != ZERO_PROGRAM_GENERATE) zero_lifetimes_end(r, i, w.at);
        double end = zero_clock_seconds();
        zero_profile_note(&r->profile, input->program, i, end - start, r->polled - polled);
        start = end;
    }
    r->walks[input->program]++;
    return ZERO_OK;
}
