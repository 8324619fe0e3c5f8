/* LOAD, FORWARD, RECOMPUTE and BACKWARD: a microbatch and the model's units. */
#include <string.h>

#include "base/fail.h"
#include "engine/walk.h"

zero_status zero_run_load(zero_walk *w, const zero_instruction *i)
{
    const zero_model *model = w->plan->model;
    zero_batch *b = &w->batch;
    size_t input = (size_t)b->T * model->input_bytes;
    size_t target = (size_t)b->T * model->target_bytes;
    char *inputs = zero_use(w, i->tokens);
    char *targets = inputs + zero_schedule_targets_at(model, b->B * b->T);
    b->first_sample = b->B * zero_walk_microbatch(w, i, w->r->comm->rank, i->microbatch);
    if (w->in->is_refused) { /* it only keeps the others company until the vote */
        memset(inputs, 0, (size_t)b->B * input);
        memset(targets, 0, (size_t)b->B * target);
    }
    for (int64_t s = 0; s < b->B && !w->in->is_refused; s++)
        w->in->source->sample(w->in->source->arg, w->in->step, b->first_sample + s, b->T,
                              inputs + (size_t)s * input, targets + (size_t)s * target);
    b->inputs = inputs;
    b->targets = targets;
    return ZERO_OK;
}

static zero_call make_call(const zero_walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    zero_call c = {
        .backend = r->backend,
        .math = &r->math,
        .batch = &w->batch,
        .training = w->in->program == ZERO_PROGRAM_STEP,
        .type = w->plan->type,
        .in = zero_use(w, i->in),
        .out = zero_use(w, i->out),
        .stream = zero_use(w, i->stream),
        .saved = zero_use(w, i->saved),
        .work = zero_use(w, i->work),
        .logits = zero_use(w, i->logits),
        .row_loss = zero_use(w, i->row_loss),
    };
    zero_use(w, i->tokens); /* the batch points there */
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        c.param[k] = zero_use(w, i->param[k]);
        c.grad[k] = zero_use(w, i->grad[k]);
        c.accumulate[k] = i->accumulate[k];
    }
    return c;
}

static zero_status collect_loss(zero_walk *w, const zero_instruction *i)
{
    const float *row = zero_use(w, i->row_loss);
    if (!row) return ZERO_OK;
    ZERO_TRY(w->r->backend->sync(&w->r->math)); /* the host reads it */
    double sum = 0.0;
    for (int64_t k = 0; k < w->batch.B * w->batch.T; k++) sum += (double)row[k];
    w->r->losses[i->microbatch] = sum;
    return ZERO_OK;
}

static zero_status
look_for_undefined(zero_walk *w, const zero_instruction *i, const zero_call *call,
                   void (*look)(const zero_model *, const zero_instruction *,
                                const zero_call *, zero_undefined *))
{
    if (!w->finds_undefined) return ZERO_OK;
    ZERO_TRY(w->r->backend->sync(&w->r->math)); /* the host reads it */
    look(w->plan->model, i, call, &w->out->undefined);
    return ZERO_OK;
}

zero_status zero_run_forward(zero_walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    if (w->finds_undefined) zero_undefined_before_forward(w->plan->model, i, &call);
    unit->forward(unit, &call);
    ZERO_TRY(look_for_undefined(w, i, &call, zero_undefined_after_forward));
    zero_origin_look_at_output(&w->search, w->r->at, i, &call);
    if (w->in->program == ZERO_PROGRAM_GENERATE && call.logits) {
        ZERO_TRY(w->r->backend->sync(&w->r->math));
        w->out->logits = call.logits;
    }
    return collect_loss(w, i);
}

/* The padding of a gradient is also sent and added, so it must be zero. */
static void clear_padding(const zero_walk *w, const zero_unit *unit, const zero_call *call)
{
    for (int k = 0; k < unit->n_groups; k++) {
        const zero_partition *p = &w->r->schedule->groups[unit->groups[k]].partition;
        if (!call->accumulate[k])
            w->r->backend->clear(&w->r->math, p->padded - p->n_params,
                                 call->grad[k] + p->n_params);
    }
}

zero_status zero_run_backward(zero_walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    clear_padding(w, unit, &call);
    if (w->finds_undefined) zero_undefined_before_backward(w->plan->model, i, &call);
    unit->backward(unit, &call);
    ZERO_TRY(look_for_undefined(w, i, &call, zero_undefined_after_backward));
    zero_origin_look_at_gradients(&w->search, w->r->at, i, &call);
    return collect_loss(w, i);
}
