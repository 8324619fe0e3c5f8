/* LOAD, FORWARD, RECOMPUTE and BACKWARD: a microbatch and the model's units. */
#include <string.h>

#include "base/fail.h"
#include "engine/walk.h"

static void write_samples(const zero_walk *w, char *inputs, char *targets)
{
    const zero_model *model = w->plan->model;
    const zero_batch *b = &w->batch;
    size_t input = (size_t)b->T * model->input_bytes;
    size_t target = (size_t)b->T * model->target_bytes;
    if (w->in->program == ZERO_PROGRAM_GENERATE) {
        memcpy(inputs, w->in->prompt, input);
        return;
    }
    if (w->in->is_refused) { /* it only keeps the others company until the vote */
        memset(inputs, 0, (size_t)b->B * input);
        memset(targets, 0, (size_t)b->B * target);
    }
    for (int64_t s = 0; s < b->B && !w->in->is_refused; s++)
        w->in->source->sample(w->in->source->arg, w->in->step, b->first_sample + s, b->T,
                              inputs + (size_t)s * input, targets + (size_t)s * target);
}

/* The tokens pass through one of two slots of the host's memory. The copy waits until the device has
 * used the tokens before them, and what is computed later waits for the copy. */
static void load_device(const zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    zero_ticket *slot = &r->token_copies[i->host - r->schedule->first_tokens];
    char *host = zero_use(w, i->host);
    zero_link_wait(&r->link, *slot);
    write_samples(w, host,
                  host + zero_schedule_targets_at(w->plan->model, w->batch.B * w->batch.T));
    zero_link_store(&r->link, zero_use(w, i->tokens), host,
                    r->schedule->buffers[i->tokens].bytes, slot);
    zero_link_after(&r->link, *slot);
}

zero_status zero_run_load(zero_walk *w, const zero_instruction *i)
{
    zero_batch *b = &w->batch;
    char *inputs = zero_use(w, i->tokens);
    char *targets = inputs + zero_schedule_targets_at(w->plan->model, b->B * b->T);
    b->first_sample = b->B * zero_walk_microbatch(w, i, w->r->comm->rank, i->microbatch);
    if (w->r->link.memory) {
        load_device(w, i);
    } else {
        /* Units of the microbatch before may still read its tokens here. */
        ZERO_TRY(w->r->backend->sync(&w->r->math));
        write_samples(w, inputs, targets);
    }
    b->inputs = inputs;
    b->targets = w->in->program == ZERO_PROGRAM_GENERATE ? NULL : targets;
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

static double sum_rows(const float *row, int64_t n)
{
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) sum += (double)row[k];
    return sum;
}

/* Microbatch m's losses of positions, on the host. */
static float *host_rows(const zero_walk *w, const zero_instruction *i, int m)
{
    size_t bytes = w->r->schedule->buffers[i->row_loss].bytes;
    return (float *)((char *)zero_use(w, i->host) + (size_t)m * bytes);
}

/* From a device they are on their way until LOSS adds them. The next microbatch's head writes its
 * losses to the same place of the device. */
static zero_status collect_loss(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const float *row = zero_use(w, i->row_loss);
    int64_t n = w->batch.B * w->batch.T;
    if (!row) return ZERO_OK;
    if (r->link.memory) {
        zero_link_fetch(&r->link, host_rows(w, i, i->microbatch), row,
                        (size_t)n * sizeof *row, &r->loss_copies[i->microbatch]);
        return ZERO_OK;
    }
    ZERO_TRY(r->backend->sync(&r->math)); /* the host reads it */
    r->losses[i->microbatch] = sum_rows(row, n);
    return ZERO_OK;
}

static void keep_last_losses(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    if (r->link.memory && i->row_loss != ZERO_NO_BUFFER && i->microbatch > 0)
        zero_link_after(&r->link, r->loss_copies[i->microbatch - 1]);
}

void zero_run_end_losses(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    zero_use(w, i->row_loss); /* it is copied until here */
    for (int m = 0; r->link.memory && m <= i->microbatch; m++) {
        zero_link_wait(&r->link, r->loss_copies[m]);
        r->losses[m] = sum_rows(host_rows(w, i, m), w->batch.B * w->batch.T);
    }
}

/* Logits that a caller reads on the host. */
static zero_status take_logits(zero_walk *w, const zero_instruction *i,
                               const zero_call *call)
{
    zero_runner *r = w->r;
    if (w->in->program != ZERO_PROGRAM_GENERATE || !call->logits) return ZERO_OK;
    w->out->logits = call->logits;
    if (!r->link.memory) return r->backend->sync(&r->math);
    float *host = zero_use(w, i->host);
    w->out->logits = host;
    zero_link_fetch_now(&r->link, host, call->logits, r->schedule->buffers[i->host].bytes);
    return ZERO_OK;
}

zero_status zero_run_forward(zero_walk *w, const zero_instruction *i)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    zero_call call = make_call(w, i);
    zero_undefined *undefined = w->finds_undefined ? &w->out->undefined : NULL;
    if (undefined) zero_undefined_before_forward(w->r, i, &call);
    keep_last_losses(w, i);
    unit->forward(unit, &call);
    if (undefined) zero_undefined_after_forward(w->r, i, &call, undefined);
    zero_origin_look_at_output(&w->search, i, &call);
    ZERO_TRY(take_logits(w, i, &call));
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
    zero_undefined *undefined = w->finds_undefined ? &w->out->undefined : NULL;
    clear_padding(w, unit, &call);
    if (undefined) zero_undefined_before_backward(w->r, i, &call);
    keep_last_losses(w, i);
    unit->backward(unit, &call);
    if (undefined) zero_undefined_after_backward(w->r, i, &call, undefined);
    zero_origin_look_at_gradients(&w->search, i, &call);
    return collect_loss(w, i);
}
