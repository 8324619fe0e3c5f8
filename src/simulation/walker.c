#include "simulation/walker.h"

void zero_walker_order(zero_walkers *w, int rank, double time)
{
    zero_events_add(&w->events, time, ZERO_EVENT_RANK, rank);
}

void zero_walker_order_look(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    if (!k->stirred || k->looks || k->state == ZERO_WALKER_ACTS) return;
    /* Arithmetic of the last look is part of it, and the look continues afterwards. */
    bool polls = k->state == ZERO_WALKER_COMPUTES && k->busy <= w->events.now;
    double now = w->events.now, poll = w->input->poll, t = now;
    if (polls && poll > 0.0) t = fmax(now, k->from + ceil((now - k->from) / poll) * poll);
    t = fmax(t, k->busy);
    if (k->state == ZERO_WALKER_COMPUTES && t >= k->until) return;
    if (k->look_at >= 0.0 && k->look_at <= t) return;
    k->look_at = t;
    zero_walker_order(w, rank, t);
}

void zero_walker_emit(const zero_walkers *w, int rank, const zero_action *a, double began,
                      double waited)
{
    const zero_simulate_input *in = w->input;
    if (!in->span || w->list[rank].step != in->steps - 1) return;
    zero_simulated_span span = {.rank = rank,
                                .at = (int)(a - zero_walker_actions(w, rank)->list),
                                .instruction = a->instruction,
                                .begin = began - w->origin,
                                .end = w->events.now - w->origin,
                                .waited = waited};
    in->span(in->arg, &span);
}

/* ---- exchanges ---- */

static const zero_group_seat *seat_of(const zero_walkers *w, int rank, const zero_action *a)
{
    return &w->groups.seats[a->lane][rank];
}

static double *joined_of(const zero_walkers *w, int rank, const zero_action *a, int step)
{
    const int lane = zero_lane_of_groups(a->lane);
    int64_t group = seat_of(w, rank, a)->number;
    return &w->joined[lane][(2 * group + step % 2) * w->begins[lane] + a->nth];
}

static double begin_call(zero_walkers *w, int rank, const zero_action *a, int64_t call,
                         int k)
{
    const zero_group_seat *seat = seat_of(w, rank, a);
    return zero_exchanges_begin(w->exchanges, seat->group, call + k,
                                w->groups.layouts[seat->layout].lists[a->first_spec + k],
                                seat->member, a);
}

static bool call_is_over(const zero_walkers *w, int rank, const zero_action *a,
                         int64_t call)
{
    const zero_group_seat *seat = seat_of(w, rank, a);
    return zero_exchange_is_over(w->exchanges, seat->group, call, seat->member);
}

static int64_t first_call(const zero_walkers *w, int rank, const zero_action *a, int step)
{
    return (int64_t)step * zero_walker_actions(w, rank)->n_calls[a->lane] + a->call;
}

static zero_chain *chain_of(zero_walker *k, const zero_action *a)
{
    return &k->chains[a->lane == ZERO_REPLICA_GROUP];
}

double zero_walker_begin_exchange(zero_walkers *w, int rank, const zero_action *a)
{
    zero_walker *k = &w->list[rank];
    int64_t call = first_call(w, rank, a, k->step);
    double seconds = 0.0;
    *joined_of(w, rank, a, k->step) = w->events.now;
    for (int i = 0; i < (a->is_chain ? 1 : a->n_calls); i++)
        seconds += begin_call(w, rank, a, call, i);
    if (a->is_chain) *chain_of(k, a) = (zero_chain){a, call, 1};
    return seconds;
}

double zero_walker_continue_chains(zero_walkers *w, int rank)
{
    double seconds = 0.0;
    for (int i = 0; i < 2; i++) {
        zero_chain *c = &w->list[rank].chains[i];
        if (!c->action || c->begun == 2 || !call_is_over(w, rank, c->action, c->call))
            continue;
        seconds += begin_call(w, rank, c->action, c->call, 1);
        c->begun = 2;
    }
    return seconds;
}

bool zero_walker_exchange_is_over(zero_walkers *w, int rank, const zero_action *a)
{
    int step = w->list[rank].step - a->steps_ago;
    if (a->steps_ago < 0 || step < 0) return true;
    if (a->is_chain) {
        zero_chain *c = chain_of(&w->list[rank], a);
        if (!c->action) return true;
        if (c->begun < 2 || !call_is_over(w, rank, c->action, c->call + 1)) return false;
        c->action = NULL;
        return true;
    }
    int64_t call = first_call(w, rank, a, step);
    for (int i = 0; i < a->n_calls; i++)
        if (!call_is_over(w, rank, a, call + i)) return false;
    return true;
}

double zero_walker_joined(const zero_walkers *w, int rank, const zero_action *a)
{
    return *joined_of(w, rank, a, w->list[rank].step - a->steps_ago);
}

void zero_walker_exchange_ended(void *walkers, const zero_exchange_end *end)
{
    const zero_walkers *w = walkers;
    const zero_simulate_input *in = w->input;
    const zero_action *a = end->begin;
    const zero_group_seat *seat = seat_of(w, end->rank, a);
    int n = zero_walker_actions(w, end->rank)->n_calls[a->lane];
    if (!in->flight || w->list[end->rank].step < in->steps - 1) return;
    int64_t call = end->call % n; /* in its step */
    const int64_t spec = a->first_spec + call - a->call;
    if (a->lane >= ZERO_FAMILY_PARTS) /* lanes of messages share the pipeline group */
        call = (call * ZERO_LANES + zero_lane_of_groups(a->lane)) * w->ranks + seat->number;
    zero_simulated_flight flight = {
        .rank = end->rank,
        .instruction = a->instruction,
        .spec = &zero_walker_actions(w, end->rank)->specs[spec].spec,
        .layout = &w->groups.layouts[seat->layout].layout,
        .member = seat->member,
        .step = (int)(end->call / n),
        .part = zero_ops[a->instruction->op].among,
        .call = call,
        .begin = end->begun - w->origin,
        .end = end->ended - w->origin};
    in->flight(in->arg, &flight);
}

/* ---- transfers ---- */

void zero_walker_begin_transfer(zero_walkers *w, int rank, const zero_action *a)
{
    const int64_t i = (int64_t)rank * w->files + a->file;
    if (!w->moves || a->seconds <= 0.0) return;
    assert(!w->moves[i]);
    w->moves[i] = true;
    zero_network_transfer(zero_exchanges_network(w->exchanges), rank, a->seconds,
                          ZERO_EXCHANGE_COOKIE(2 * i + 1));
}

bool zero_walker_transfer_is_over(const zero_walkers *w, int rank, const zero_action *a)
{
    return !w->moves || !w->moves[(int64_t)rank * w->files + a->file];
}

void zero_walker_run_ahead(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    const zero_actions *all = zero_walker_actions(w, rank);
    /* The walk itself is at one of them. */
    if (!w->moves || zero_walker_present(w, rank)->is_of_stream) return;
    for (; k->ahead < all->n; k->ahead++) {
        const zero_action *a = &all->list[k->ahead];
        if (!a->is_of_stream) continue;
        if (a->after >= k->at) return;
        if (a->kind == ZERO_WORK_TRANSFER_WAIT && !zero_walker_transfer_is_over(w, rank, a))
            return;
        if (a->kind == ZERO_WORK_TRANSFER) zero_walker_begin_transfer(w, rank, a);
        zero_walker_emit(w, rank, a, w->events.now, 0.0);
    }
}
