#include "state/host_copies.h"

#include "sharding/checks.h"

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

void zero_host_store(zero_runner *r, int g, zero_call_place place)
{
    const zero_group_state *state = &r->schedule->groups[g];
    zero_range held = zero_states_held(r->schedule, g);
    zero_link_store_since(&r->link, place, zero_runner_element(r, state->param, held.begin),
                          zero_runner_element(r, state->host_param, held.begin),
                          zero_range_bytes(held, r->schedule->input.type),
                          &r->param_copies[g]);
    zero_link_after(&r->link, r->param_copies[g]);
}
