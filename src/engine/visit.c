#include "engine/visit.h"

#include <assert.h>

#include "base/fail.h"
#include "base/range.h"
#include "sharding/checks.h"

static zero_state_block resident(const zero_runner *r, int group, zero_range range)
{
    const zero_group_state *g = &r->schedule->groups[group];
    bool is_exact = r->schedule->input.type == ZERO_FP32;
    int master = is_exact ? g->param : g->master;
    return (zero_state_block){.range = range,
                              .master = zero_runner_element(r, master, range.begin),
                              .momentum = zero_runner_element(r, g->momentum, range.begin),
                              .variance = zero_runner_element(r, g->variance, range.begin)};
}

zero_status zero_states_visit(zero_runner *r, int group, zero_range range,
                              zero_visit_access access, zero_state_visitor *visit,
                              void *arg)
{
    (void)access; /* memory is read and written where it lies */
    if (zero_range_is_empty(range)) return ZERO_OK;
    assert(zero_range_len(zero_range_overlap(
               range, zero_states_held(r->schedule, group))) == zero_range_len(range));
    ZERO_TRY(r->backend->sync(&r->math)); /* the host reads what the backend wrote */
    zero_state_block block = resident(r, group, range);
    return visit(arg, &block);
}

zero_status zero_states_view(zero_runner *r, int group, zero_range range, float *room,
                             zero_state_block *view)
{
    (void)room; /* memory is read where it lies */
    assert(zero_range_len(range) <= ZERO_STATES_VIEW);
    assert(zero_range_len(zero_range_overlap(
               range, zero_states_held(r->schedule, group))) == zero_range_len(range));
    ZERO_TRY(r->backend->sync(&r->math));
    *view = resident(r, group, range);
    return ZERO_OK;
}
