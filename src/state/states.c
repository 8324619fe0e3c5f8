#include "state/states.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "sharding/checks.h"
#include "state/digest.h"
#include "state/host_copies.h"
#include "state/inspect.h"

#define WEIGHTS_AT_ONCE ((int64_t)1 << 20) /* floats; a checkpoint reads such blocks */

/* ---- filling ---- */

struct filling {
    const zero_model *model;
    const zero_weights *weights;
    int group;
};

static zero_status fill_block(void *arg, const zero_state_block *block)
{
    const struct filling *f = arg;
    return zero_weights_fill(f->weights, f->model, f->group, block->range, block->master);
}

static zero_status fill_masters(zero_runner *r, const zero_weights *weights, int g)
{
    struct filling f = {r->schedule->input.model, weights, g};
    return zero_states_visit(r, g, zero_states_held(r->schedule, g), ZERO_VISIT_CHANGE,
                             fill_block, &f);
}

struct pieces {
    const zero_plan_input *plan;
    const zero_weights *weights;
    int group;
    int64_t at; /* the next element */
    float *chunk;
    zero_status status;
};

/* Writes the next elements, rounded, whose bytes fill a piece. */
static void fill_piece(void *arg, void *piece, size_t bytes)
{
    struct pieces *p = arg;
    size_t size = zero_type_size(p->plan->type);
    for (int64_t left = (int64_t)(bytes / size); left > 0 && p->status == ZERO_OK;) {
        int64_t n = zero_min(left, WEIGHTS_AT_ONCE);
        p->status = zero_weights_fill(p->weights, p->plan->model, p->group,
                                      (zero_range){p->at, p->at + n}, p->chunk);
        zero_convert(ZERO_FP32, p->plan->type, n, p->chunk, piece);
        piece = (char *)piece + (size_t)n * size;
        p->at += n;
        left -= n;
    }
}

/* Fills without masters, by way of `chunk`. */
static zero_status fill_rounded(zero_runner *r, const zero_weights *weights, int g,
                                float *chunk)
{
    const zero_plan_input *plan = &r->schedule->input;
    zero_range own = zero_states_held(r->schedule, g);
    struct pieces p = {plan, weights, g, own.begin, chunk, ZERO_OK};
    ZERO_TRY(zero_overwrite(
        r, zero_runner_element(r, r->schedule->groups[g].param, own.begin),
        (size_t)zero_range_len(own) * zero_type_size(plan->type), fill_piece, &p));
    return p.status;
}

zero_status zero_states_fill(zero_runner *r, const zero_weights *weights)
{
    const zero_plan_input *plan = &r->schedule->input;
    bool has_masters = plan->type == ZERO_FP32 || !plan->forward_only;
    float *chunk = has_masters ? NULL : malloc(WEIGHTS_AT_ONCE * sizeof *chunk);
    zero_status st = ZERO_OK;
    if (!has_masters && !chunk)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory to round %" PRId64 " weights",
                       WEIGHTS_AT_ONCE);
    for (int g = 0; st == ZERO_OK && g < plan->model->n_groups; g++)
        st = has_masters ? fill_masters(r, weights, g) : fill_rounded(r, weights, g, chunk);
    free(chunk);
    return st;
}

/* ---- rounding ---- */

struct rounding {
    zero_runner *r;
    int param; /* the buffer */
};

static zero_status round_block(void *arg, const zero_state_block *block)
{
    const struct rounding *to = arg;
    zero_runner *r = to->r;
    r->backend->round(&r->math, r->schedule->input.type, zero_range_len(block->range),
                      block->master, zero_runner_element(r, to->param, block->range.begin));
    return r->backend->sync(&r->math); /* the next block may lie where this one does */
}

/* Updates beside a device: the host rounds, and copies. */
static zero_status round_block_beside(void *arg, const zero_state_block *block)
{
    const struct rounding *to = arg;
    zero_convert(ZERO_FP32, to->r->schedule->input.type, zero_range_len(block->range),
                 block->master, zero_runner_element(to->r, to->param, block->range.begin));
    return ZERO_OK;
}

static zero_status round_beside(zero_runner *r, int g)
{
    const zero_group_state *state = &r->schedule->groups[g];
    struct rounding to = {r, state->host_param};
    zero_host_await(r, g);
    if (state->host_param != state->master)
        ZERO_TRY(zero_states_visit(r, g, zero_states_held(r->schedule, g), ZERO_VISIT_READ,
                                   round_block_beside, &to));
    zero_host_store(r, g, 0);
    return ZERO_OK;
}

/* In fp32 a delayed update works on a copy of the masters. */
static void copy_late(zero_runner *r, int g)
{
    const zero_schedule *s = r->schedule;
    const zero_group_state *state = &s->groups[g];
    zero_range held = zero_states_held(s, g);
    if (state->late_param == ZERO_NO_BUFFER || s->input.type != ZERO_FP32) return;
    memcpy(zero_runner_element(r, state->late_param, held.begin),
           zero_runner_element(r, state->param, held.begin),
           (size_t)zero_range_len(held) * sizeof(float));
}

zero_status zero_states_round(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        struct rounding to = {r, s->groups[g].param};
        copy_late(r, g);
        if (zero_plan_updates_beside(&s->input)) {
            ZERO_TRY(round_beside(r, g));
            continue;
        }
        bool is_master = s->input.type == ZERO_FP32 || s->input.forward_only;
        if (is_master || zero_offload_has_parameters(s, g)) continue;
        if (r->link.memory) {
            /* On a device masters and parameters lie beside each other. */
            const zero_group_state *state = &r->schedule->groups[g];
            zero_range held = zero_states_held(r->schedule, g);
            r->backend->round(&r->math, r->schedule->input.type, zero_range_len(held),
                              zero_runner_element(r, state->master, held.begin),
                              zero_runner_element(r, state->param, held.begin));
        } else
            ZERO_TRY(zero_states_visit(r, g, zero_states_held(s, g), ZERO_VISIT_READ,
                                       round_block, &to));
    }
    return ZERO_OK;
}

/* ---- hashing ---- */

static zero_status read_states(void *arg, int group, zero_range range,
                               zero_state_visitor *visit, void *visit_arg)
{
    return zero_states_visit(arg, group, range, ZERO_VISIT_READ, visit, visit_arg);
}

zero_status zero_states_digest(zero_runner *r, char hex[33])
{
    const zero_schedule *s = r->schedule;
    int n = s->input.model->n_groups;
    const zero_partition **partitions = calloc((size_t)n, sizeof *partitions);
    zero_status st = zero_allocated(partitions, "no memory for %d groups", n);
    st = zero_agree(r->comm, st);
    for (int g = 0; st == ZERO_OK && g < n; g++) partitions[g] = &s->groups[g].partition;
    if (st == ZERO_OK)
        st = zero_digest(s->input.model, r->comm, partitions,
                         &(zero_digest_source){read_states, r}, hex);
    free(partitions);
    return st;
}
