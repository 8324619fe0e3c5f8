#include "engine/origin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/range.h"
#include "nn/model.h"

/* ---- looking ---- */

zero_origin_search zero_origin_open(bool is_on, zero_runner *r)
{
    return (zero_origin_search){.is_on = is_on, .r = r, .first = {.at = -1}};
}

static const zero_model *model_of(const zero_origin_search *s)
{
    return s->r->schedule->input.model;
}

/* Squares of floats cannot overflow a double: the sum is finite exactly if all of x is. */
static bool is_finite(const zero_origin_search *s, zero_type type, int64_t n, const void *x)
{
    zero_runner *r = s->r;
    double sum, *found = &sum, *where = &sum;
    if (r->link.memory) { /* NORM comes later */
        where = zero_runner_buffer(r, r->schedule->squares);
        found = zero_runner_buffer(r, r->schedule->squares_host);
    }
    r->backend->sum_squares(&r->math, type, n, x, where);
    if (r->link.memory) zero_link_fetch_now(&r->link, found, where, sizeof sum);
    return isfinite(*found);
}

static void note(zero_origin_search *s, const zero_instruction *i, int tensor)
{
    if (s->first.at >= 0) return;
    s->first = (zero_origin){
        .at = s->r->at, .unit = i->unit, .tensor = tensor, .microbatch = i->microbatch};
}

/* The unit that has the losses writes them in its forward or in its backward pass. */
static void look_at_loss(zero_origin_search *s, const zero_instruction *i,
                         const zero_call *call)
{
    int64_t n = call->batch->B * call->batch->T;
    if (call->row_loss && !is_finite(s, ZERO_FP32, n, call->row_loss))
        note(s, i, ZERO_ORIGIN_LOSS);
}

void zero_origin_look_at_output(zero_origin_search *s, const zero_instruction *i,
                                const zero_call *call)
{
    if (!s->is_on) return;
    const zero_unit *unit = &model_of(s)->units[i->unit];
    zero_unit_sizes size = unit->sizes(unit, call->batch->B, call->batch->T);
    if (call->out && !is_finite(s, unit->activations, size.out, call->out))
        note(s, i, ZERO_ORIGIN_OUTPUT);
    look_at_loss(s, i, call);
}

void zero_origin_look_at_joint(zero_origin_search *s, const zero_instruction *i,
                               const zero_unit_part *part, const zero_call *call)
{
    if (!s->is_on || part->join == ZERO_JOIN_NONE) return;
    int where = i->op == ZERO_OP_BACKWARD ? ZERO_ORIGIN_JOINT : ZERO_ORIGIN_OUTPUT;
    if (!is_finite(s, ZERO_FP32, part->count, call->joint)) note(s, i, where);
}

/* The tensors of a group within `range` of it, whose elements begin at `x`. */
static void look_at_tensors(zero_origin_search *s, const zero_instruction *i, int group,
                            zero_range range, zero_type type, const void *x)
{
    const zero_group *g = &model_of(s)->groups[group];
    for (int t = g->first_tensor; t < g->first_tensor + g->n_tensors; t++) {
        zero_range part =
            zero_range_overlap(zero_range_of_tensor(&model_of(s)->tensors[t]), range);
        if (zero_range_is_empty(part)) continue;
        const char *from =
            (const char *)x + (size_t)(part.begin - range.begin) * zero_type_size(type);
        if (!is_finite(s, type, zero_range_len(part), from)) note(s, i, t);
    }
}

void zero_origin_look_at_gradients(zero_origin_search *s, const zero_instruction *i,
                                   const zero_call *call)
{
    if (!s->is_on) return;
    const zero_unit *unit = &model_of(s)->units[i->unit];
    for (int k = 0; k < unit->n_groups; k++) {
        zero_range all = {0, model_of(s)->groups[unit->groups[k]].n_params};
        look_at_tensors(s, i, unit->groups[k], all, ZERO_FP32, call->grad[k]);
    }
    look_at_loss(s, i, call);
}

/* A gradient that was finite in the backward pass may be too large for 16 bits, or its
 * sum. */
void zero_origin_look_at_sum(zero_origin_search *s, const zero_instruction *i,
                             zero_type type, const void *x)
{
    if (s->is_on) look_at_tensors(s, i, i->group, i->range, type, x);
}

/* ---- telling ---- */

/* The earliest origin of all ranks', and its rank; -1: no rank has one. */
static zero_status find_first(zero_comm *comm, const zero_origin *mine, double *all,
                              zero_origin *first, int *rank)
{
    const double own[] = {mine->at, mine->unit, mine->tensor, mine->microbatch};
    ZERO_TRY(zero_comm_all_gather_doubles(comm, 4, own, all));
    *rank = -1;
    for (int r = 0; r < comm->size; r++) {
        const double *of = all + 4 * r;
        if (of[0] < 0.0 || (*rank >= 0 && (int)of[0] >= first->at)) continue;
        *first = (zero_origin){(int)of[0], (int)of[1], (int)of[2], (int)of[3]};
        *rank = r;
    }
    return ZERO_OK;
}

#define RANK_TEXT 64

static void describe(const zero_plan_input *plan, const zero_origin *o, int number,
                     char text[ZERO_ORIGIN_TEXT])
{
    const zero_model *model = plan->model;
    const size_t size = ZERO_ORIGIN_TEXT;
    char rank[RANK_TEXT];
    /* "rank 5", or with tensor parallelism "rank 5 (d 1, p 1)". */
    if (model->share.ranks == 1)
        snprintf(rank, RANK_TEXT, "rank %d", number);
    else
        snprintf(rank, RANK_TEXT, "rank %d (d %d, p %d)", number,
                 number / model->share.ranks, number % model->share.ranks);
    if (number < 0)
        snprintf(text, size, "every rank's gradients are finite, but not their sum");
    else if (o->tensor == ZERO_ORIGIN_LOSS)
        snprintf(text, size, "it begins in the losses of %s, on %s, microbatch %d",
                 model->units[o->unit].name, rank, o->microbatch);
    else if (o->tensor < 0)
        snprintf(text, size, "it begins in the %s pass of %s, on %s, microbatch %d",
                 o->tensor == ZERO_ORIGIN_JOINT ? "backward" : "forward",
                 model->units[o->unit].name, rank, o->microbatch);
    else if (o->unit < 0)
        snprintf(text, size,
                 "it begins where the gradient of %s is rounded to %s or added, on %s, "
                 "microbatch %d",
                 model->tensors[o->tensor].name, zero_type_name(plan->type), rank,
                 o->microbatch);
    else
        snprintf(text, size,
                 "it begins in the gradient of %s, in the backward pass of %s, on %s, "
                 "microbatch %d",
                 model->tensors[o->tensor].name, model->units[o->unit].name, rank,
                 o->microbatch);
}

zero_status zero_origin_describe(zero_comm *comm, const zero_plan_input *plan,
                                 const zero_origin *mine, char text[ZERO_ORIGIN_TEXT])
{
    zero_origin first;
    int rank;
    double *all = malloc((size_t)comm->size * 4 * sizeof *all);
    zero_status st =
        zero_allocated(all, "no memory for the origins of %d ranks", comm->size);
    st = zero_agree(comm, st);
    if (st == ZERO_OK) st = find_first(comm, mine, all, &first, &rank);
    if (st == ZERO_OK) describe(plan, &first, rank, text);
    free(all);
    return st;
}
