#include "engine/states.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/range.h"
#include "engine/digest.h"
#include "sharding/checks.h"

#define WEIGHTS_AT_ONCE ((int64_t)1 << 20) /* floats; a checkpoint reads such blocks */

zero_engine_state zero_states_of(const zero_runner *r, int group)
{
    const zero_group_state *g = &r->schedule->groups[group];
    zero_range range = zero_states_held(r->schedule, group);
    bool is_exact = r->schedule->input.type == ZERO_FP32;
    int master = is_exact ? g->param : g->master;
    return (zero_engine_state){.range = range,
                               .master = zero_runner_element(r, master, range.begin),
                               .momentum = zero_runner_element(r, g->momentum, range.begin),
                               .variance =
                                   zero_runner_element(r, g->variance, range.begin)};
}

/* ---- filling ---- */

static zero_status fill_masters(zero_runner *r, const zero_weights *weights, int g)
{
    zero_engine_state own = zero_states_of(r, g);
    return zero_weights_fill(weights, r->schedule->input.model, g, own.range, own.master);
}

/* Fills without masters, by way of `chunk`. */
static zero_status fill_rounded(zero_runner *r, const zero_weights *weights, int g,
                                float *chunk)
{
    const zero_plan_input *plan = &r->schedule->input;
    zero_range own = zero_states_of(r, g).range;
    for (int64_t at = own.begin; at < own.end; at += WEIGHTS_AT_ONCE) {
        zero_range part = {at, zero_min(at + WEIGHTS_AT_ONCE, own.end)};
        ZERO_TRY(zero_weights_fill(weights, plan->model, g, part, chunk));
        r->backend->round(&r->math, plan->type, zero_range_len(part), chunk,
                          zero_runner_element(r, r->schedule->groups[g].param, at));
        ZERO_TRY(r->backend->sync(&r->math)); /* the next part overwrites the chunk */
    }
    return ZERO_OK;
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

zero_status zero_states_round(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_engine_state own = zero_states_of(r, g);
        if (s->groups[g].master == ZERO_NO_BUFFER) continue;
        r->backend->round(&r->math, s->input.type, zero_range_len(own.range), own.master,
                          zero_runner_element(r, s->groups[g].param, own.range.begin));
    }
    return r->backend->sync(&r->math);
}

/* ---- hashing ---- */

static zero_status digest(zero_runner *r, const zero_partition **partitions,
                          zero_group_view *views, char hex[33])
{
    const zero_schedule *s = r->schedule;
    int n = s->input.model->n_groups;
    zero_status st = ZERO_OK;
    if (!partitions || !views) st = zero_fail(ZERO_ERR_NOMEM, "no memory for %d groups", n);
    ZERO_TRY(zero_agree(r->comm, st));
    for (int g = 0; g < n; g++) {
        zero_engine_state own = zero_states_of(r, g);
        partitions[g] = &s->groups[g].partition;
        views[g] = (zero_group_view){own.master, own.momentum, own.variance, own.range};
    }
    return zero_digest(s->input.model, r->comm, partitions, views, hex);
}

zero_status zero_states_digest(zero_runner *r, char hex[33])
{
    size_t n = (size_t)r->schedule->input.model->n_groups;
    const zero_partition **partitions = calloc(n, sizeof *partitions);
    zero_group_view *views = calloc(n, sizeof *views);
    zero_status st = digest(r, partitions, views, hex);
    free(partitions);
    free(views);
    return st;
}
