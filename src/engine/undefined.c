#include "engine/undefined.h"

#include <inttypes.h>

#include "base/fail.h"
#include "nn/mark.h"

static void note(zero_undefined *first, const zero_undefined *found)
{
    if (first->unit < 0 && found->element >= 0) *first = *found;
}

static zero_unit_sizes sizes_of(const zero_model *model, int unit, const zero_call *call)
{
    const zero_unit *u = &model->units[unit];
    return u->sizes(u, call->batch->B, call->batch->T);
}

/* ---- forward ---- */

void zero_undefined_before_forward(const zero_model *model, const zero_instruction *i,
                                   const zero_call *call)
{
    zero_unit_sizes s = sizes_of(model, i->unit, call);
    zero_mark_fill(call->out, s.out);
    zero_mark_fill(call->saved, s.saved);
    zero_mark_fill(call->work, s.forward_work);
}

void zero_undefined_after_forward(const zero_model *model, const zero_instruction *i,
                                  const zero_call *call, zero_undefined *first)
{
    zero_unit_sizes s = sizes_of(model, i->unit, call);
    note(first, &(zero_undefined){.kind = ZERO_UNDEFINED_OUTPUT,
                                  .unit = i->unit,
                                  .element = zero_mark_find(call->out, s.out)});
}

/* ---- backward ---- */

/* The part of the stream that the call must write, and cannot read: all of it where the stream
 * begins, else what the input has more than the output. */
static zero_range written_stream(const zero_model *model, int unit, const zero_call *call)
{
    if (unit == 0) return (zero_range){0, 0};
    int64_t in = sizes_of(model, unit - 1, call).out;
    bool begins = unit == model->n_units - 1;
    return (zero_range){begins ? 0 : sizes_of(model, unit, call).out, in};
}

void zero_undefined_before_backward(const zero_model *model, const zero_instruction *i,
                                    const zero_call *call)
{
    const zero_unit *unit = &model->units[i->unit];
    zero_unit_sizes s = sizes_of(model, i->unit, call);
    zero_range stream = written_stream(model, i->unit, call);
    for (int k = 0; k < unit->n_groups; k++)
        if (!call->accumulate[k])
            zero_mark_fill(call->grad[k], model->groups[unit->groups[k]].n_params);
    if (call->stream)
        zero_mark_fill(call->stream + stream.begin, stream.end - stream.begin);
    zero_mark_fill(call->row_loss, s.row_loss);
    zero_mark_fill(call->work, s.backward_work);
}

static void look_at_gradients(const zero_model *model, int unit, const zero_call *call,
                              zero_undefined *first)
{
    const zero_unit *u = &model->units[unit];
    for (int k = 0; k < u->n_groups; k++) {
        const zero_group *g = &model->groups[u->groups[k]];
        for (int t = g->first_tensor; t < g->first_tensor + g->n_tensors; t++) {
            zero_range part = zero_range_of_tensor(&model->tensors[t]);
            note(first,
                 &(zero_undefined){.kind = ZERO_UNDEFINED_GRADIENT,
                                   .unit = unit,
                                   .tensor = t,
                                   .element = zero_mark_find(call->grad[k] + part.begin,
                                                             part.end - part.begin)});
        }
    }
}

void zero_undefined_after_backward(const zero_model *model, const zero_instruction *i,
                                   const zero_call *call, zero_undefined *first)
{
    int64_t losses = sizes_of(model, i->unit, call).row_loss;
    look_at_gradients(model, i->unit, call, first);
    note(first, &(zero_undefined){.kind = ZERO_UNDEFINED_LOSS,
                                  .unit = i->unit,
                                  .element = zero_mark_find(call->row_loss, losses)});
    if (i->unit == 0) return;
    int64_t inputs = sizes_of(model, i->unit - 1, call).out;
    note(first, &(zero_undefined){.kind = ZERO_UNDEFINED_STREAM,
                                  .unit = i->unit,
                                  .element = zero_mark_find(call->stream, inputs)});
}

/* ---- telling ---- */

zero_status zero_undefined_tell(const zero_model *model, const zero_undefined *first)
{
    if (first->unit < 0) return ZERO_OK;
    const char *unit = model->units[first->unit].name;
    switch (first->kind) {
    case ZERO_UNDEFINED_OUTPUT:
        return zero_fail(ZERO_ERR_INVALID,
                         "unit '%s' leaves element %" PRId64 " of its output undefined: a "
                         "forward call sets as many as sizes() says",
                         unit, first->element);
    case ZERO_UNDEFINED_GRADIENT:
        return zero_fail(ZERO_ERR_INVALID,
                         "unit '%s' leaves element %" PRId64 " of the gradient of '%s' "
                         "undefined: a backward call sets every element of a gradient, and "
                         "adds only where call->accumulate is true",
                         unit, first->element, model->tensors[first->tensor].name);
    case ZERO_UNDEFINED_STREAM:
        return zero_fail(ZERO_ERR_INVALID,
                         "unit '%s' leaves element %" PRId64
                         " of the gradient of its input "
                         "undefined: a backward call sets stream to d(in)",
                         unit, first->element);
    case ZERO_UNDEFINED_LOSS: break;
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "unit '%s' leaves the loss of position %" PRId64
                     " undefined: the last "
                     "unit's backward call sets row_loss",
                     unit, first->element);
}
