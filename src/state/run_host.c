/* FETCH_GRAD and STORE_PARAM: gradients come to the host, and new parameters return. */
#include "state/run_host.h"

#include "base/range.h"
#include "sharding/checks.h"
#include "state/walk.h"

void zero_host_await(zero_runner *r, int g)
{
    zero_link_wait(&r->link, r->param_copies[g]);
}

/* A delayed update reads a copy of the gradient, and so does not wait for the next one. */
static zero_ticket gradient_of(const zero_runner *r, int g)
{
    bool is_late = r->schedule->input.offload == ZERO_OFFLOAD_DELAYED;
    return is_late ? 0 : r->grad_copies[g];
}

bool zero_host_may_update(zero_runner *r, int g)
{
    return zero_link_has_ended(&r->link, gradient_of(r, g)) &&
           zero_link_has_ended(&r->link, r->param_copies[g]);
}

void zero_host_await_update(zero_runner *r, int g)
{
    zero_link_wait(&r->link, gradient_of(r, g));
    zero_host_await(r, g);
}

static size_t bytes_of(const zero_runner *r, zero_range range)
{
    return (size_t)zero_range_len(range) * zero_type_size(r->schedule->input.type);
}

void zero_host_store(zero_runner *r, int g, zero_call_place place)
{
    const zero_group_state *state = &r->schedule->groups[g];
    zero_range held = zero_states_held(r->schedule, g);
    zero_link_store_since(&r->link, place, zero_runner_element(r, state->param, held.begin),
                          zero_runner_element(r, state->host_param, held.begin),
                          bytes_of(r, held), &r->param_copies[g]);
    zero_link_after(&r->link, r->param_copies[g]);
}

zero_status zero_run_fetch_grad(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    zero_link_fetch(&r->link, zero_use_element(w, i->host, i->range.begin),
                    zero_use_element(w, i->in, i->range.begin), bytes_of(r, i->range),
                    &r->grad_copies[i->group]);
    return ZERO_OK;
}

/* Does nothing where UPDATE left the masters as they are. */
zero_status zero_run_store_param(zero_walk *w, const zero_instruction *i)
{
    zero_use(w, i->host);
    zero_use(w, i->buffer);
    if (w->update.is_due) zero_host_store(w->r, i->group, w->begin);
    return ZERO_OK;
}
