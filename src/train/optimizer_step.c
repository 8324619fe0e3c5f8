/* zero_optimizer_step(): one step of the optimizer on flat arrays. */
#include "train/optimizer.h"

#include <math.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/range.h"
#include "comm/comm.h"
#include "comm/fields.h"
#include "sharding/update.h"

/* The places of an array's parts: the shards in place, the rest in its padded copy. */
struct place {
    char *all[PARTS]; /* [N][stride] */
    char *own[PARTS]; /* [stride] */
};

static struct place find(const zero_optimizer *o, char *array, char *copy)
{
    const struct part *rest = &o->parts[REST];
    struct place place = {.all = {array, copy}};
    /* The padding of the copy starts as zeros, and sums of zeros stay zeros. */
    memcpy(copy, array + zero_optimizer_bytes(o, rest->begin),
           zero_optimizer_bytes(o, o->spec.n_params - rest->begin));
    for (int i = 0; i < PARTS; i++)
        place.own[i] =
            place.all[i] + zero_optimizer_bytes(o, o->parts[i].stride * o->comm->rank);
    return place;
}

/* Reduces all ranks' parts to their owners, or gathers them. */
static zero_status exchange(zero_optimizer *o, const struct place *at, bool gathers)
{
    for (int i = 0; i < PARTS; i++)
        ZERO_TRY(zero_collective_begin(
            &o->parts[i].collectives[gathers], gathers ? at->own[i] : at->all[i],
            gathers ? at->all[i] : at->own[i], o->parts[i].staging));
    for (int i = 0; i < PARTS; i++)
        ZERO_TRY(zero_collective_wait(&o->parts[i].collectives[gathers]));
    return ZERO_OK;
}

/* Updates elements `span` of part i. */
static void update_span(zero_optimizer *o, int i, zero_range span, const zero_adamw *h,
                        const struct place *params, const struct place *grads)
{
    const struct part *p = &o->parts[i];
    int64_t at = span.begin - p->own.begin, n = zero_range_len(span);
    char *param = params->own[i] + zero_optimizer_bytes(o, at);
    bool is_master = o->spec.type == ZERO_FP32;
    if (n <= 0) return;
    o->backend->adamw(
        &o->math, h,
        &(zero_adamw_arrays){.n = n,
                             .type = o->spec.type,
                             .grad = grads->own[i] + zero_optimizer_bytes(o, at),
                             .master = is_master ? (float *)(void *)param : p->master + at,
                             .m = p->momentum + at,
                             .v = p->variance + at,
                             .param = is_master ? NULL : param});
}

static void update_part(zero_optimizer *o, int i, const zero_adamw *decaying,
                        const struct place *params, const struct place *grads)
{
    zero_range left = o->parts[i].own;
    zero_adamw plain = *decaying;
    plain.weight_decay = 0.0f;
    for (int k = 0; k < o->spec.n_no_decay; k++) {
        zero_range s = zero_range_overlap(o->no_decay[k], left);
        if (zero_range_is_empty(s)) continue;
        update_span(o, i, (zero_range){left.begin, s.begin}, decaying, params, grads);
        update_span(o, i, s, &plain, params, grads);
        left.begin = s.end;
    }
    update_span(o, i, left, decaying, params, grads);
}

/* ---- arguments ---- */

/* The numbers of a step that must be equal on all ranks. */
static const zero_field input_fields[] = {
    ZERO_FIELD(zero_optimizer_input, lr),           ZERO_FIELD(zero_optimizer_input, beta1),
    ZERO_FIELD(zero_optimizer_input, beta2),        ZERO_FIELD(zero_optimizer_input, eps),
    ZERO_FIELD(zero_optimizer_input, weight_decay), ZERO_FIELD(zero_optimizer_input, clip),
    ZERO_FIELD(zero_optimizer_input, divisor),
};
_Static_assert(sizeof(zero_optimizer_input) == 8 * ZERO_COUNT(input_fields),
               "a row for each");

static zero_status check_arrays(const zero_optimizer *o, const char *params,
                                const char *grads)
{
    size_t bytes = zero_optimizer_bytes(o, o->spec.n_params);
    if (!params || !grads)
        return zero_fail(ZERO_ERR_INVALID,
                         "an optimizer step without its array of %s: the pointer is NULL",
                         params ? "gradients" : "parameters");
    uintptr_t p = (uintptr_t)params, g = (uintptr_t)grads;
    if (p + bytes <= g || g + bytes <= p) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "the arrays of parameters and of gradients overlap: expected %zu bytes for each",
        bytes);
}

static zero_status check_input(const zero_optimizer_input *in, zero_adamw *h)
{
    if (!in)
        return zero_fail(ZERO_ERR_INVALID,
                         "the step's input is NULL: expected its learning rate and so on");
    if (!(in->divisor > 0.0) || !isfinite(in->divisor))
        return zero_fail(ZERO_ERR_INVALID,
                         "an optimizer step with divisor %g: expected more than 0, finite",
                         in->divisor);
    *h = zero_update_adamw(in->lr, in->beta1, in->beta2, in->eps, in->weight_decay);
    return zero_update_check(h, in->clip);
}

/* One reduction tells whether all ranks were called rightly, and alike. */
static zero_status agree_on(zero_optimizer *o, zero_status mine,
                            const zero_optimizer_input *in)
{
    const uint64_t positive = UINT64_MAX >> 1;
    uint64_t hash = mine == ZERO_OK ? XXH3_64bits(in, sizeof *in) : 0;
    int64_t failed;
    bool same;
    ZERO_TRY(zero_comm_vote(o->comm, mine != ZERO_OK, (int64_t)(hash & positive), &failed,
                            &same));
    if (failed) return zero_agree(o->comm, mine);
    if (same) return ZERO_OK;
    ZERO_TRY(zero_compare_fields(o->comm, "the step", ZERO_COUNT(input_fields),
                                 input_fields, in));
    return zero_fail(
        ZERO_ERR_INVALID,
        "ranks were given different steps, although their numbers read the same");
}

/* ---- the step ---- */

static zero_status step(zero_optimizer *o, void *params, void *grads,
                        const zero_optimizer_input *in, zero_adamw *hyper,
                        zero_optimizer_result *out)
{
    const struct part *rest = &o->parts[REST];
    struct place p = find(o, params, rest->params), g = find(o, grads, rest->grads);
    ZERO_TRY(exchange(o, &g, false));
    /* Squares of floats cannot overflow a double, so the sum is finite if and only if
     * the gradient is. */
    zero_tree_span spans[PARTS];
    for (int i = 0; i < PARTS; i++) {
        spans[i] = zero_gradient_squares(o->backend, &o->math, o->spec.type,
                                         o->spec.n_params, o->parts[i].own, g.own[i]);
    }
    ZERO_TRY(zero_comm_merge_spans(o->comm, PARTS, spans));
    zero_tree_span_merge(&spans[SHARDS], &spans[REST]);
    double squares = zero_tree_span_sum(&spans[SHARDS]);
    out->grad_norm = sqrt(squares) / in->divisor;
    ZERO_TRY(zero_comm_any(o->comm, !isfinite(squares), &out->overflow));
    hyper->step = o->updates + 1;
    hyper->grad_scale = zero_update_grad_scale(out->grad_norm, in->clip, in->divisor);
    if (!out->overflow) {
        for (int i = 0; i < PARTS; i++) update_part(o, i, hyper, &p, &g);
        ZERO_TRY(o->backend->sync(&o->math));
        ZERO_TRY(exchange(o, &p, true));
    }
    o->updates += !out->overflow;
    memcpy((char *)params + zero_optimizer_bytes(o, rest->begin), rest->params,
           zero_optimizer_bytes(o, o->spec.n_params - rest->begin));
    return ZERO_OK;
}

zero_status zero_optimizer_step(zero_optimizer *o, void *params, void *grads,
                                const zero_optimizer_input *in,
                                zero_optimizer_result *result)
{
    zero_adamw hyper;
    zero_optimizer_result out;
    if (!o)
        return zero_fail(ZERO_ERR_INVALID,
                         "the optimizer is NULL: open one with zero_optimizer_open()");
    ZERO_TRY(zero_comm_check(o->comm));
    zero_status st = check_arrays(o, params, grads);
    if (st == ZERO_OK) st = check_input(in, &hyper);
    if (st == ZERO_OK && !result)
        st = zero_fail(ZERO_ERR_INVALID, "the place for the result is NULL");
    ZERO_TRY(agree_on(o, st, in));
    ZERO_TRY(step(o, params, grads, in, &hyper, &out));
    *result = out;
    return ZERO_OK;
}
