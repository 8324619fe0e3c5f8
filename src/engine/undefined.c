#include "engine/undefined.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/type.h"
#include "nn/mark.h"
#include "state/inspect.h"

/* One call of a unit. */
struct looking {
    zero_runner *r;
    const zero_model *model;
    const zero_unit *unit;
    int number; /* of the unit */
    const zero_call *call;
    zero_unit_sizes sizes;
};

static zero_unit_sizes sizes_of(const zero_model *model, int unit, const zero_call *call)
{
    const zero_unit *u = &model->units[unit];
    return u->sizes(u, call->batch->B, call->batch->T);
}

static struct looking look_of(zero_runner *r, const zero_instruction *i,
                              const zero_call *call)
{
    const zero_model *model = r->schedule->input.model;
    return (struct looking){.r = r,
                            .model = model,
                            .unit = &model->units[i->unit],
                            .number = i->unit,
                            .call = call,
                            .sizes = sizes_of(model, i->unit, call)};
}

/* ---- marks ---- */

static void fill_piece(void *arg, void *piece, size_t bytes)
{
    const zero_type *type = arg;
    zero_mark_fill_type(*type, piece, (int64_t)(bytes / zero_type_size(*type)));
}

/* A failure is kept for the vote of the step: the other ranks continue until then. */
static void mark(const struct looking *l, zero_type type, void *x, int64_t n)
{
    if (!x || n <= 0) return;
    zero_link_keep(&l->r->link, zero_overwrite(l->r, x, (size_t)n * zero_type_size(type),
                                               fill_piece, &type));
}

/* Memory of n floats that has activations; sums among them are undefined with their mark,
 * too. */
static void mark_room(const struct looking *l, float *x, int64_t n)
{
    const zero_type type = l->unit->activations;
    mark(l, type, x, type == ZERO_FP32 ? n : 2 * n);
}

struct finding {
    zero_type type;
    int64_t passed, found; /* elements; -1: no mark yet */
};

static void find_in_piece(void *arg, const void *piece, size_t bytes)
{
    struct finding *f = arg;
    int64_t n = (int64_t)(bytes / zero_type_size(f->type));
    int64_t at = zero_mark_find_type(f->type, piece, n);
    if (f->found < 0 && at >= 0) f->found = f->passed + at;
    f->passed += n;
}

/* Notes the first mark among x[n] as `what`, if nothing was noted before. */
static void find(const struct looking *l, zero_type type, const void *x, int64_t n,
                 zero_undefined what, zero_undefined *first)
{
    struct finding f = {.type = type, .found = -1};
    if (!x || n <= 0 || first->unit >= 0) return;
    zero_link_keep(&l->r->link, zero_inspect(l->r, x, (size_t)n * zero_type_size(type),
                                             find_in_piece, &f));
    if (f.found < 0) return;
    *first = what;
    first->unit = l->number;
    first->element = f.found;
}

/* ---- forward ---- */

void zero_undefined_before_forward(zero_runner *r, const zero_instruction *i,
                                   const zero_call *call)
{
    struct looking l = look_of(r, i, call);
    mark(&l, l.unit->activations, call->out, l.sizes.out);
    mark_room(&l, call->saved, l.sizes.saved);
    mark_room(&l, call->work, l.sizes.forward_work);
}

void zero_undefined_after_forward(zero_runner *r, const zero_instruction *i,
                                  const zero_call *call, zero_undefined *first)
{
    struct looking l = look_of(r, i, call);
    find(&l, l.unit->activations, call->out, l.sizes.out,
         (zero_undefined){.kind = ZERO_UNDEFINED_OUTPUT}, first);
}

/* ---- backward ---- */

/* The part of the stream that the call must write, and cannot read: all of it where the
 * stream begins, else what the input has more than the output. */
static zero_range written_stream(const struct looking *l)
{
    if (l->number == 0) return (zero_range){0, 0};
    int64_t in = sizes_of(l->model, l->number - 1, l->call).out;
    bool begins = l->number == l->model->n_units - 1;
    return (zero_range){begins ? 0 : l->sizes.out, in};
}

void zero_undefined_before_backward(zero_runner *r, const zero_instruction *i,
                                    const zero_call *call)
{
    struct looking l = look_of(r, i, call);
    zero_range stream = written_stream(&l);
    for (int k = 0; k < l.unit->n_groups; k++)
        if (!call->accumulate[k])
            mark(&l, ZERO_FP32, call->grad[k], l.model->groups[l.unit->groups[k]].n_params);
    if (call->stream)
        mark(&l, l.unit->activations,
             zero_type_to(l.unit->activations, call->stream, stream.begin),
             stream.end - stream.begin);
    mark(&l, ZERO_FP32, call->row_loss, l.sizes.row_loss);
    mark_room(&l, call->work, l.sizes.backward_work);
}

void zero_undefined_after_backward(zero_runner *r, const zero_instruction *i,
                                   const zero_call *call, zero_undefined *first)
{
    struct looking l = look_of(r, i, call);
    for (int k = 0; k < l.unit->n_groups; k++) {
        const zero_group *g = &l.model->groups[l.unit->groups[k]];
        for (int t = g->first_tensor; t < g->first_tensor + g->n_tensors; t++) {
            zero_range part = zero_range_of_tensor(&l.model->tensors[t]);
            find(&l, ZERO_FP32, call->grad[k] + part.begin, zero_range_len(part),
                 (zero_undefined){.kind = ZERO_UNDEFINED_GRADIENT, .tensor = t}, first);
        }
    }
    find(&l, ZERO_FP32, call->row_loss, l.sizes.row_loss,
         (zero_undefined){.kind = ZERO_UNDEFINED_LOSS}, first);
    if (l.number == 0) return;
    find(&l, l.unit->activations, call->stream, sizes_of(l.model, l.number - 1, call).out,
         (zero_undefined){.kind = ZERO_UNDEFINED_STREAM}, first);
}

/* ---- telling ---- */

zero_status zero_undefined_tell(const zero_model *model, const zero_undefined *first)
{
    if (first->unit < 0) return ZERO_OK;
    const char *unit = model->units[first->unit].name;
    switch (first->kind) {
    case ZERO_UNDEFINED_OUTPUT:
        return zero_fail(
            ZERO_ERR_INVALID,
            "unit '%s' leaves element %" PRId64
            " of its output undefined: a forward call sets as many as sizes() says",
            unit, first->element);
    case ZERO_UNDEFINED_GRADIENT:
        return zero_fail(
            ZERO_ERR_INVALID,
            "unit '%s' leaves element %" PRId64
            " of the gradient of '%s' undefined: a backward call sets every element of a "
            "gradient, and adds only where call->accumulate is true",
            unit, first->element, model->tensors[first->tensor].name);
    case ZERO_UNDEFINED_STREAM:
        return zero_fail(
            ZERO_ERR_INVALID,
            "unit '%s' leaves element %" PRId64
            " of the gradient of its input undefined: a backward call sets stream to d(in)",
            unit, first->element);
    case ZERO_UNDEFINED_LOSS: break;
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "unit '%s' leaves the loss of position %" PRId64
                     " undefined: the last unit's backward call sets row_loss",
                     unit, first->element);
}
