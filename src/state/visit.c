#include "state/visit.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "sharding/checks.h"
#include "state/host_copies.h"
#include "state/visit_device.h"
#include "state/visit_file.h"

static bool is_in_file(const zero_runner *r, int group)
{
    return r->schedule->groups[group].n_blocks > 0;
}

/* With offload states lie beside the device. */
static bool are_on_device(const zero_runner *r)
{
    return r->link.memory && !zero_plan_updates_beside(&r->schedule->input);
}

/* Lets the host use states in its memory: what has been queued there has ended. Reading needs no
 * wait for copies to the device. */
static zero_status wait_for_host(zero_runner *r, int group, zero_visit_access access)
{
    if (!zero_plan_updates_beside(&r->schedule->input)) return r->backend->sync(&r->math);
    if (access != ZERO_VISIT_READ) zero_host_await(r, group);
    return ZERO_OK;
}

static zero_state_block resident(const zero_runner *r, int group, zero_range range)
{
    const zero_group_state *g = &r->schedule->groups[group];
    int master = zero_master_buffer(r->schedule, group);
    return (zero_state_block){.range = range,
                              .master = zero_runner_element(r, master, range.begin),
                              .momentum = zero_runner_element(r, g->momentum, range.begin),
                              .variance = zero_runner_element(r, g->variance, range.begin)};
}

zero_status zero_states_visit(zero_runner *r, int group, zero_range range,
                              zero_visit_access access, zero_state_visitor *visit,
                              void *arg)
{
    if (zero_range_is_empty(range)) return ZERO_OK;
    assert(zero_range_len(zero_range_overlap(
               range, zero_states_held(r->schedule, group))) == zero_range_len(range));
    if (are_on_device(r))
        return zero_states_visit_device(r, group, range, access, visit, arg);
    ZERO_TRY(wait_for_host(r, group, access));
    if (is_in_file(r, group))
        return zero_states_visit_file(r, group, range, access, visit, arg);
    zero_state_block block = resident(r, group, range);
    return visit(arg, &block);
}

/* ---- in one piece ---- */

struct copying {
    zero_range range;
    float *room;
};

static zero_status copy_block(void *arg, const zero_state_block *block)
{
    const struct copying *c = arg;
    const float *from[] = {block->master, block->momentum, block->variance};
    int64_t all = zero_range_len(c->range), at = block->range.begin - c->range.begin;
    for (int a = 0; a < 3; a++)
        if (from[a])
            memcpy(c->room + a * all + at, from[a],
                   (size_t)zero_range_len(block->range) * sizeof(float));
    return ZERO_OK;
}

static zero_status copy(zero_runner *r, int group, zero_range range, float *room,
                        zero_state_block *view)
{
    int64_t n = zero_range_len(range);
    struct copying c = {range, room};
    ZERO_TRY(zero_states_visit(r, group, range, ZERO_VISIT_READ, copy_block, &c));
    *view = (zero_state_block){range, room, room + n, room + 2 * n};
    return ZERO_OK;
}

zero_status zero_states_view(zero_runner *r, int group, zero_range range, float *room,
                             zero_state_block *view)
{
    assert(zero_range_len(range) <= ZERO_STATES_VIEW);
    assert(zero_range_len(zero_range_overlap(
               range, zero_states_held(r->schedule, group))) == zero_range_len(range));
    if (is_in_file(r, group) || are_on_device(r)) return copy(r, group, range, room, view);
    ZERO_TRY(wait_for_host(r, group, ZERO_VISIT_READ));
    *view = resident(r, group, range);
    return ZERO_OK;
}
