#include "simulation/walker.h"

#include <math.h>

void zero_walker_order(zero_walkers *w, int rank, double time)
{
    zero_events_add(w->in.events, time, ZERO_EVENT_RANK, rank);
}

/* When a rank that computes looks next. */
static double next_poll(const zero_walkers *w, const zero_walker *k)
{
    double poll = w->in.input->poll, t = zero_walker_now(w);
    if (poll <= 0.0) return t;
    double polls = ceil((t - k->from) / poll);
    return fmax(t, k->from + polls * poll);
}

void zero_walker_order_look(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    if (!k->stirred || k->looks || k->state == ZERO_WALKER_ACTS) return;
    /* Arithmetic of the last look is part of it, and the look continues afterwards. */
    bool polls = k->state == ZERO_WALKER_COMPUTES && k->busy <= zero_walker_now(w);
    double t = fmax(polls ? next_poll(w, k) : zero_walker_now(w), k->busy);
    if (k->state == ZERO_WALKER_COMPUTES && t >= k->until) return;
    if (k->look_at >= 0.0 && k->look_at <= t) return;
    k->look_at = t;
    zero_walker_order(w, rank, t);
}

void zero_walker_emit(const zero_walkers *w, int rank, const zero_action *a, double began,
                      double waited)
{
    const zero_simulate_input *in = w->in.input;
    if (!in->span || w->list[rank].step != in->steps - 1) return;
    zero_simulated_span span = {.rank = rank,
                                .at = (int)(a - zero_walker_actions(w, rank)->list),
                                .instruction = a->instruction,
                                .begin = began - w->origin,
                                .end = zero_walker_now(w) - w->origin,
                                .waited = waited};
    in->span(in->arg, &span);
}
